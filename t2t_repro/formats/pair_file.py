"""Open file of sentence pairs: its languages, its pairs and their counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from t2t_repro.formats.languages import find_pair
from t2t_repro.system.errors import UserError, format_count

# Other white space, such as no-break spaces, belongs to the text.
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")


class Pair(NamedTuple):
    """Sentence and its translation.

    Attributes:
        source: Source text in one line.
        target: Target text in one line.
        place: Place in the file for messages, such as "unit 17 (tuid a4), line 88".
    """

    source: str
    target: str
    place: str


def join_lines(text: str) -> str:
    """Returns a text in one line: each run of white space becomes one space."""
    # The usual text needs no change. Expressions are slow.
    if "  " in text or "\n" in text or "\t" in text or "\r" in text:
        text = _WHITE_SPACE.sub(" ", text)
    return text.strip(" ")


class PairFile:
    """Open file of sentence pairs, and what was found in it.

    Attributes:
        path: Path of the file.
        file: Its decompressed bytes.
        source_lang: Wanted source language.
        target_lang: Wanted target language.
        reference: Name of the wanted reference of a file with several; None: the first.
        references: Names of the references that were found.
        units: Number of units that were read, with or without a pair.
    """

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        source_lang: str,
        target_lang: str,
        reference: str | None = None,
    ) -> None:
        self.path = path
        self.file = file
        self.source_lang = source_lang
        self.target_lang = target_lang
        self.reference = reference
        self.references: list[str] = []
        self.units = 0
        # Indices of source and target for each sequence of languages of a unit.
        self._choices: dict[tuple[str | None, ...], tuple[int, int] | None] = {}
        self._taken: Counter[tuple[str | None, str | None]] = Counter()

    def choose(self, codes: tuple[str | None, ...]) -> tuple[int, int] | None:
        """Returns the indices of source and target among the languages of a unit."""
        try:
            return self._choices[codes]
        except KeyError:
            choice = find_pair(self.source_lang, self.target_lang, codes)
            self._choices[codes] = choice
            return choice

    def make_pair(
        self, codes: tuple[str | None, ...], texts: Sequence[str], place: str
    ) -> Pair | None:
        """Counts a unit and returns its pair.

        Args:
            codes: Language of each text, in the order of the file; None if unknown.
            texts: Texts of the unit, with any white space.
            place: Place of the unit in the file.

        Returns:
            None if a language is missing or has no text.
        """
        self.units += 1
        choice = self.choose(codes)
        if choice is None:
            return None
        source, target = choice
        one, other = join_lines(texts[source]), join_lines(texts[target])
        if not one or not other:
            return None
        self._taken[codes[source], codes[target]] += 1
        return Pair(one, other, place)

    def error(self, place: str, message: str) -> UserError:
        """Returns the error of a place in the file."""
        return UserError(f"{self.path}: {join_lines(place)}: {message}")

    def summary(self) -> str:
        """Returns the number of pairs and the language variants in one line.

        Raises UserError if the file has no pair.
        """
        pairs = self._taken.total()
        if not pairs:
            raise UserError(self._explain_no_pairs())
        variants = []
        for side in (0, 1):
            counts: Counter[str | None] = Counter()
            for codes, count in self._taken.items():
                counts[codes[side]] += count
            variants += [f"{code} {n:,}" for code, n in counts.most_common() if code]
        if len(self.references) > 1:
            name = self.reference or self.references[0]
            variants.append(f"reference {name} of {', '.join(self.references)}")
        taken = f" ({', '.join(variants)})" * bool(variants)
        units = format_count(self.units, "unit")
        return f"{self.path.name}: {format_count(pairs, 'pair')} of {units}{taken}"

    def _explain_no_pairs(self) -> str:
        wanted = f"{self.source_lang} and {self.target_lang}"
        if not self.units:
            return f"{self.path} has no texts in {wanted}; give another file"
        if self.reference is not None and self.reference not in self.references:
            references = ", ".join(self.references) or "none"
            return (
                f"{self.path} has no reference {self.reference}; its references are "
                f"{references}"
            )
        found = {code for codes in self._choices for code in codes if code}
        languages = ", ".join(sorted(found)) or "unknown"
        return (
            f"{self.path}: none of its {format_count(self.units, 'unit')} has a "
            f"finished text in {wanted}; languages of the file: {languages}"
        )
