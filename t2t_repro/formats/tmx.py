"""Pairs of TMX files, versions 1.1 to 1.4b.

Source: the TMX 1.4b specification (LISA, 2005), elements `tu`, `tuv` and `seg`. TMX 1.1
has the attribute `lang` in place of `xml:lang`.
"""

from __future__ import annotations

from t2t_repro.formats.inline_codes import TMX_CODES
from t2t_repro.formats.pair_file import Pair, PairFile, join_lines
from t2t_repro.formats.xml_stream import Handler


class TmxUnits(Handler[Pair]):
    """Reader of the units of a document.

    It yields a pair for each unit with text in both languages. The order of the
    variants and `srclang` do not matter. Of several variants of a language, the one
    with the wanted code is read, else the first with text.

    Expat calls `CharacterDataHandler` only within segments, outside of codes, because
    calls for the white space between elements would take a third of the time.
    """

    def __init__(self, file: PairFile) -> None:
        super().__init__()
        self._file = file
        self._unit: dict[str, str] = {}  # Attributes of the current unit.
        self._line = 0
        self._codes: list[str | None] = []  # Languages of the variants with text.
        self._texts: list[str] = []
        self._code: str | None = None  # Language of the current variant.
        self._parts: list[str] = []  # Text of the current segment.
        self._depth = 0  # Number of open codes.

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begins a unit, a variant, a segment or a code."""
        if name == "seg":
            self._parts = []
            self.parser.CharacterDataHandler = self._parts.append
        elif name == "tuv":
            self._code = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "tu":
            self._unit = attributes
            self._line = self.parser.CurrentLineNumber
            self._codes = []
            self._texts = []
        elif name in TMX_CODES:
            self._depth += 1
            self.parser.CharacterDataHandler = None

    def end(self, name: str) -> None:
        """Ends a code, a segment or a unit."""
        if name == "seg":
            self.parser.CharacterDataHandler = None
            text = "".join(self._parts)
            if text and not text.isspace():
                self._codes.append(self._code)
                self._texts.append(text)
        elif name == "tu":
            tuid = self._unit.get("tuid")
            name = f" (tuid {join_lines(tuid)})" if tuid else ""
            place = f"unit {self._file.units + 1}{name}, line {self._line}"
            pair = self._file.make_pair(tuple(self._codes), self._texts, place)
            if pair:
                self.results.append(pair)
        elif name in TMX_CODES:
            self._depth -= 1
            if not self._depth:
                self.parser.CharacterDataHandler = self._parts.append
