"""Pairs of XCES alignments, the native format of OPUS, with their documents.

Source: OPUS (Tiedemann, LREC 2012): `linkGrp` names two documents, and the attribute
`xtargets` of each `link` the aligned sentences, "2 3;2".
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.xml_stream import Handler, parse
from t2t_repro.system.compression import open_bytes, strip_suffix
from t2t_repro.system.errors import UserError

_FOLDERS = ("", "raw", "xml")  # Of the documents, from the folder of the alignment.


class XcesLinks(Handler[Pair]):
    """Reader of the links of a document; two documents are in memory at a time."""

    def __init__(self, file: PairFile) -> None:
        super().__init__()
        self._file = file
        self._languages: tuple[str | None, ...] = ()
        # Sentences of both documents by their ids; empty for other languages.
        self._documents: list[dict[str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Reads the documents of a group, or adds the pair of a link."""
        if name == "linkGrp":
            names = [attributes.get("fromDoc", ""), attributes.get("toDoc", "")]
            # Documents are in a folder for each language: "de/2024/doc1.xml.gz".
            self._languages = tuple(name.partition("/")[0] for name in names)
            wanted = self._file.choose(self._languages) is not None
            self._documents = [self._read(name) for name in names] if wanted else []
        elif name == "link":
            line = self.parser.CurrentLineNumber
            place = f"link {attributes.get('id', '')}, line {line}"
            sides = attributes.get("xtargets", "").split(";")
            if len(sides) != 2:
                raise self._file.error(place, 'xtargets must be like "1 2;1"')
            texts = [
                " ".join(self._find(document, number, place) for number in ids.split())
                for document, ids in zip(self._documents, sides, strict=False)
            ]
            pair = self._file.make_pair(self._languages, texts, place)
            if pair:
                self.results.append(pair)

    def _find(self, document: dict[str, str], number: str, place: str) -> str:
        if number not in document:
            raise self._file.error(place, f"its document has no sentence {number}")
        return document[number]

    def _read(self, name: str) -> dict[str, str]:
        """Returns the sentences of a document by their ids."""
        relative = PurePosixPath(name)
        if not name or relative.is_absolute() or ".." in relative.parts:
            raise UserError(f"{self._file.path}: {name!r} is not a document's name")
        plain = strip_suffix(name)
        tried = [
            self._file.path.parent / folder / document
            for folder in _FOLDERS
            for document in dict.fromkeys((name, plain, f"{plain}.gz"))
        ]
        path = next(filter(Path.is_file, tried), None)
        if path is None:
            raise UserError(
                f"{self._file.path} needs its document {name}, which is neither in its "
                f"folder nor in {_FOLDERS[1]}/ or {_FOLDERS[2]}/; extract the documents"
            )
        with open_bytes(path) as file:
            return dict(parse(file, path, _Sentences()))


class _Sentences(Handler[tuple[str, str]]):
    """Reader of the id and the text of each sentence of a document."""

    def __init__(self) -> None:
        super().__init__()
        self._id = ""
        self._parts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begins a sentence."""
        if name == "s":
            self._id = attributes.get("id", "")
            self._parts = []
            self.parser.CharacterDataHandler = self._parts.append

    def end(self, name: str) -> None:
        """Ends a sentence."""
        if name == "s":
            self.parser.CharacterDataHandler = None
            self.results.append((self._id, "".join(self._parts)))
