"""Pairs of XLIFF files, versions 1.1, 1.2 and 2.x.

Sources: XLIFF 1.2 (OASIS, 2008), elements `trans-unit`, `seg-source`, `mrk`, `target`
and attributes `approved`, `state`; XLIFF 2.1 (OASIS, 2018), elements `unit`, `segment`.
"""

from __future__ import annotations

from t2t_repro.formats.inline_codes import XLIFF_CODES
from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.xml_stream import Handler, local_name

# Elements with a `source` and `target` that are not the unit's own.
_IGNORED = {"alt-trans", "bin-unit", "ignorable", "matches", "resourceData"}
_TEXTS = {"source", "seg-source", "target"}


def is_finished(approved: str | None, state: str | None) -> bool:
    """Returns whether a translation is finished, by its attributes.

    Args:
        approved: Attribute `approved` of a unit of XLIFF 1; None if missing.
        state: Attribute `state` of its target, or of a segment of XLIFF 2; None if
            missing, as in files of many programs, whose translations count.
    """
    if approved == "yes":
        return True
    state = state or ""
    if state in ("new", "initial") or state.startswith("needs-"):
        return False
    return approved != "no" or state in ("final", "signed-off")


class XliffUnits(Handler[Pair]):
    """Reader of the units of a document.

    It yields a pair for each unit with a finished translation; for units that are
    divided into segments, one for each segment.
    """

    def __init__(self, file: PairFile) -> None:
        super().__init__()
        self._file = file
        self._languages: tuple[str | None, ...] = (None, None)
        self._unit: dict[str, str] = {}  # Attributes of the current unit.
        self._line = 0
        self._state: str | None = None  # Of the current target or segment.
        self._ignored = 0  # Number of open elements that are ignored.
        # Parts of the texts of the current unit, by element and by segment. The key of
        # the whole text is None.
        self._texts: dict[str, dict[str | None, list[str]]] = {}
        self._open: dict[str | None, list[str]] | None = None  # The current text.
        self._marks: list[str | None] = []  # Segments of the open `mrk` elements.
        self._depth = 0  # Number of open codes.

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begins a file, a unit, a segment, a text or an element within a text."""
        name = local_name(name)
        if self._open is not None:
            if name in XLIFF_CODES:
                self._depth += 1
            elif name == "mrk":
                is_segment = attributes.get("mtype") == "seg"
                self._marks.append(attributes.get("mid", "") if is_segment else None)
        elif name in _IGNORED:
            self._ignored += 1
        elif self._ignored:
            return
        elif name == "xliff" and "srcLang" in attributes:
            self._languages = (attributes["srcLang"], attributes.get("trgLang"))
        elif name == "file" and "source-language" in attributes:
            target = attributes.get("target-language")
            self._languages = (attributes["source-language"], target)
        elif name in ("trans-unit", "unit"):
            self._unit = attributes
            self._begin(None)
        elif name == "segment":
            self._begin(attributes.get("state"))
        elif name in _TEXTS:
            if name == "target":
                self._state = attributes.get("state", self._state)
            self._open = self._texts[name] = {None: []}
            self.parser.CharacterDataHandler = self._add

    def end(self, name: str) -> None:
        """Ends an element; adds the pairs of a unit or a segment."""
        name = local_name(name)
        if self._open is not None:
            if name in XLIFF_CODES:
                self._depth -= 1
            elif name == "mrk":
                self._marks.pop()
            elif name in _TEXTS:
                self._open = None
                self.parser.CharacterDataHandler = None
        elif name in _IGNORED:
            self._ignored -= 1
        elif name in ("trans-unit", "segment") and not self._ignored:
            self._add_pairs()

    def _begin(self, state: str | None) -> None:
        self._line = self.parser.CurrentLineNumber
        self._state = state
        self._texts = {}

    def _add(self, text: str) -> None:
        """Adds text to the whole text and to the open segments."""
        if self._open is None or self._depth:
            return
        for segment in {None, *self._marks}:
            self._open.setdefault(segment, []).append(text)

    def _add_pairs(self) -> None:
        """Adds the pairs of a unit of XLIFF 1 or a segment of XLIFF 2."""
        sources = self._texts.get("seg-source") or self._texts.get("source", {})
        targets = self._texts.get("target", {})
        finished = is_finished(self._unit.get("approved"), self._state)
        if self._unit.get("restype") == "x-gettext-domain-header" or not finished:
            targets = {}
        segments: list[str | None] = [
            mid for mid in sources if mid is not None and len(targets) > 1
        ]
        for segment in segments or [None]:
            texts = ["".join(side.get(segment, ())) for side in (sources, targets)]
            part = "" if segment is None else f", segment {segment}"
            place = f"unit {self._unit.get('id')}{part}, line {self._line}"
            pair = self._file.make_pair(self._languages, texts, place)
            if pair:
                self.results.append(pair)
