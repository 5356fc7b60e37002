"""Pairs of the test sets of WMT: .xml since 2021, pairs of .sgm files before.

An .xml file contains the sources, one or several references with the names of their
translators, and translations of systems (`hyp`), which are not read. Sources of .sgm
files are in `NAME-src.LANGUAGE.sgm`, references in `NAME-ref.LANGUAGE.sgm`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple

from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.xml_stream import Handler
from t2t_repro.system.compression import open_bytes
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_formats import describe_encoding

_SGM_TAG = re.compile(
    r"<(?P<tag>/?(?:doc|seg|srcset|refset))\b(?P<attributes>[^>]*)>", re.IGNORECASE
)
_SGM_NAME = re.compile(r"(?P<set>.*)[-.](?P<side>src|ref)\.(?P<lang>[\w-]+)\.sgm.*")


class WmtDocuments(Handler[Pair]):
    """Reader of the documents of an .xml file; one is in memory at a time.

    Each segment is paired with its reference of the wanted name, else with that of the
    first translator in the file.
    """

    def __init__(self, file: PairFile) -> None:
        super().__init__()
        self._file = file
        self._source: str | None = None  # Language.
        self._target: str | None = None
        # Texts of the sources and the references by the ids of their segments.
        self._sources: dict[str, str] = {}
        self._references: dict[str, dict[str, str]] = {}
        self._open: dict[str, str] | None = None  # Where segments belong.
        self._document = self._segment = ""
        self._line = 0
        self._parts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begins a document, a side of it or a segment."""
        if name == "doc":
            self._document = attributes.get("id", "")
            self._line = self.parser.CurrentLineNumber
            self._sources, self._references = {}, {}
        elif name == "src":
            self._source = attributes.get("lang")
            self._open = self._sources
        elif name == "ref":
            self._target = attributes.get("lang")
            translator = attributes.get("translator", "")
            if translator not in self._file.references:
                self._file.references.append(translator)
            self._open = self._references.setdefault(translator, {})
        elif name == "hyp":
            self._open = None
        elif name == "seg" and self._open is not None:
            self._segment = attributes.get("id", "")
            self._parts = []
            self.parser.CharacterDataHandler = self._parts.append

    def end(self, name: str) -> None:
        """Ends a segment; adds the pairs of a document."""
        if name == "seg" and self._open is not None:
            self.parser.CharacterDataHandler = None
            self._open[self._segment] = "".join(self._parts)
        elif name == "doc":
            wanted = self._file.reference
            if wanted is None and self._file.references:
                wanted = self._file.references[0]
            targets = self._references.get(wanted or "", {})
            for segment, source in self._sources.items():
                texts = (source, targets.get(segment, ""))
                name = f"segment {segment} of document {self._document}"
                place = f"{name}, line {self._line}"
                languages = (self._source, self._target)
                pair = self._file.make_pair(languages, texts, place)
                if pair:
                    self.results.append(pair)


class _Segment(NamedTuple):
    """Segment of an .sgm file: its name, its line and its text."""

    name: str
    line: int
    text: str


def is_reference_sgm(name: str) -> bool:
    """Returns whether a file name is that of an .sgm file with references."""
    match = _SGM_NAME.fullmatch(name)
    return match is not None and match["side"] == "ref"


def read_sgm(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of two .sgm files, given one of them.

    Raises:
        UserError: The other file is missing, a file is incomplete, or their segments
            differ.
    """
    path, languages = _find_other_sgm(file)
    with open_bytes(path) as other_file:
        own = _iterate_segments(file.file, str(file.path))
        others = _iterate_segments(other_file, str(path))
        end = _Segment("the end", 0, "")
        for segment, other in zip_longest(own, others, fillvalue=end):
            if segment.name != other.name:
                raise UserError(
                    f"{file.path} and {path} must have the same segments: "
                    f"{segment.name} is at the place of {other.name}"
                )
            texts = (segment.text, other.text)
            place = f"{segment.name}, line {segment.line}"
            if pair := file.make_pair(languages, texts, place):
                yield pair


def _find_other_sgm(file: PairFile) -> tuple[Path, tuple[str, str]]:
    """Returns the path of the other file of a pair, and the languages of both."""
    own = _SGM_NAME.fullmatch(file.path.name)
    if own is None:
        raise UserError(
            f"{file.path}: rename it to NAME-src.LANGUAGE.sgm, or NAME-ref.LANGUAGE.sgm"
            " for references"
        )
    side = "ref" if own["side"] == "src" else "src"
    found = [
        (path, (own["lang"], other["lang"]))
        for path in sorted(file.path.parent.iterdir())
        if (other := _SGM_NAME.fullmatch(path.name))
        and (other["set"], other["side"]) == (own["set"], side)
        and file.choose((own["lang"], other["lang"]))
    ]
    if len(found) != 1:
        names = ", ".join(path.name for path, _ in found) or "none"
        raise UserError(
            f"{file.path} needs one file {own['set']}-{side}.LANGUAGE.sgm for "
            f"{file.source_lang}-{file.target_lang}; found: {names}"
        )
    return found[0]


def _iterate_segments(file: BinaryIO, name: str) -> Iterator[_Segment]:
    """Yields the segments of an .sgm file, which is SGML and seldom valid XML.

    Raises UserError if the file is not UTF-8 or incomplete.
    """
    document = segment = ""
    parts: list[str] | None = None  # Text of the current segment.
    is_complete = False
    for number, line in enumerate(file, 1):
        try:
            decoded = line.decode("utf-8")
        except UnicodeDecodeError:
            raise UserError(
                f"{name}:{number}: not valid UTF-8; {describe_encoding(line)}"
            ) from None
        end = 0
        for tag in _SGM_TAG.finditer(decoded):
            if parts is not None:
                parts.append(decoded[end : tag.start()])
            end = tag.end()
            kind, attributes = tag["tag"].lower(), tag["attributes"]
            if kind == "doc":
                document = _find_attribute("docid", attributes)
            elif kind == "seg":
                segment_id = _find_attribute("id", attributes)
                segment = f"segment {segment_id} of document {document}"
                parts = []
            elif kind == "/seg" and parts is not None:
                yield _Segment(segment, number, html.unescape("".join(parts)))
                parts = None
            is_complete |= kind in ("/srcset", "/refset")
        if parts is not None:
            parts.append(decoded[end:])
    if not is_complete:
        raise UserError(
            f"{name}: the end tag of srcset or refset is missing; the file is "
            "incomplete, download it again"
        )


def _find_attribute(name: str, attributes: str) -> str:
    match = re.search(rf"""\b{name}\s*=\s*["']?([^"'\s]*)""", attributes)
    return match[1] if match else ""
