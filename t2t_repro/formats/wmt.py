"""Pairs of the test sets of WMT: .xml since 2021, pairs of .sgm files before.

An .xml file contains the sources, one or several references with the names of their
translators, and translations of systems (`hyp`), which are not read. Sources of .sgm
files are in `NAME-src.LANGUAGE.sgm`, references in `NAME-ref.LANGUAGE.sgm`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import zip_longest
from typing import BinaryIO, NamedTuple

from t2t_repro.formats.pair_file import Pair, PairFile, join_lines
from t2t_repro.formats.xml_stream import Handler
from t2t_repro.system.atomic_file import decode_lines
from t2t_repro.system.compression import open_bytes
from t2t_repro.system.errors import UserError

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
    """Segment of an .sgm file: its ids, its line and its text."""

    document: str
    number: str
    line: int
    text: str


class _SgmParser(HTMLParser):
    """Parser of .sgm files, which are SGML: not all of them are well-formed XML."""

    def __init__(self) -> None:
        super().__init__()
        self.segments: list[_Segment] = []
        self.is_complete = False
        self._document = self._number = ""
        self._text: list[str] | None = None  # None: outside of segments.

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begins a document or a segment."""
        attributes = dict(attrs)
        if tag == "doc":
            self._document = attributes.get("docid") or ""
        elif tag == "seg":
            self._number = attributes.get("id") or ""
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        """Ends a segment or the file."""
        if tag == "seg" and self._text is not None:
            text, line = "".join(self._text), self.getpos()[0]
            self.segments.append(_Segment(self._document, self._number, line, text))
            self._text = None
        self.is_complete |= tag in ("srcset", "refset")

    def handle_data(self, data: str) -> None:
        """Adds text to a segment."""
        if self._text is not None:
            self._text.append(data)


def is_reference_sgm(name: str) -> bool:
    """Returns whether a file name is that of an .sgm file with references."""
    match = _SGM_NAME.fullmatch(name)
    return bool(match) and match["side"] == "ref"


def read_sgm(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of two .sgm files, given one of them.

    Raises:
        UserError: The other file is missing, a file is incomplete, or their segments
            differ.
    """
    match = _SGM_NAME.fullmatch(file.path.name)
    if match is None:
        raise UserError(
            f"{file.path}: rename it to NAME-src.LANGUAGE.sgm, or NAME-ref.LANGUAGE.sgm"
            " for references"
        )
    is_source = match["side"] == "src"
    other_side = "ref" if is_source else "src"
    found = [
        (path, other["lang"])
        for path in sorted(file.path.parent.iterdir())
        if (other := _SGM_NAME.fullmatch(path.name))
        and (other["set"], other["side"]) == (match["set"], other_side)
        and file.choose((match["lang"], other["lang"]))
    ]
    if len(found) != 1:
        raise UserError(
            f"{file.path} needs one file {match['set']}-{other_side}.LANGUAGE.sgm for "
            f"{file.source_lang}-{file.target_lang}; found: "
            f"{', '.join(path.name for path, _ in found) or 'none'}"
        )
    [(path, language)] = found
    languages = (match["lang"], language)
    with open_bytes(path) as other_file:
        own = _iterate_segments(file.file, str(file.path))
        others = _iterate_segments(other_file, str(path))
        for segment, other_segment in zip_longest(own, others):
            if (segment and segment[:2]) != (other_segment and other_segment[:2]):
                raise UserError(
                    f"{file.path} and {path} differ: {_name_segment(segment)} against "
                    f"{_name_segment(other_segment)}; they must have the same segments"
                )
            place = f"{_name_segment(segment)}, line {segment.line}"
            texts = (segment.text, other_segment.text)
            if pair := file.make_pair(languages, texts, place):
                yield pair


def _name_segment(segment: _Segment | None) -> str:
    if segment is None:
        return "its end"
    return join_lines(f"segment {segment.number} of document {segment.document}")


def _iterate_segments(file: BinaryIO, name: str) -> Iterator[_Segment]:
    """Yields the segments of an .sgm file; UserError if it is incomplete."""
    parser = _SgmParser()
    for line in decode_lines(file, name):
        parser.feed(f"{line}\n")
        yield from parser.segments
        parser.segments.clear()
    if not parser.is_complete:
        raise UserError(
            f"{name}: the end tag of srcset or refset is missing; the file is "
            "incomplete, download it again"
        )
