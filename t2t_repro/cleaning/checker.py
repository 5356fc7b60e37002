"""Repairs, and the rules that look at a pair without the rest of the corpus."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence

import numpy as np

from t2t_repro.cleaning.checked_file import MARKS, Checked, Place
from t2t_repro.cleaning.language import LanguageOdds
from t2t_repro.cleaning.pair_rules import PAIR_RULES, split_words
from t2t_repro.cleaning.repairs import REPAIRS, join_spaces
from t2t_repro.cleaning.report import Report
from t2t_repro.cleaning.rules import CODES, Thresholds
from t2t_repro.formats.languages import base_language

_NOT_LETTERS = re.compile(r"[\W_]+")


class PairChecker:
    """Applies the repairs and the rules that need no other pair.

    Args:
        thresholds: Active rules, from `load_rules`.
        languages: Codes of the source and the target language, such as ("en", "de").
    """

    def __init__(self, thresholds: Thresholds, languages: tuple[str, str]) -> None:
        self._thresholds = thresholds
        self._languages = [base_language(code) for code in languages]
        self._repairs = {n: call for n, call in REPAIRS.items() if n in thresholds}
        self._rules = [
            (CODES[name], drops, thresholds[name])
            for name, (drops, _) in PAIR_RULES.items()
            if name in thresholds
        ]
        self._odds = LanguageOdds() if "language" in thresholds else None

    def __call__(self, chunk: Sequence[Place]) -> Checked:
        """Returns the verdicts and the repaired texts of a chunk."""
        report = Report()
        pairs = [self._repair(*line, report) for line in chunk]
        marks = np.zeros(len(pairs), MARKS)
        verdicts = marks["verdict"]
        verdicts[:] = [self._find_rule(*pair) for pair in pairs]
        if self._odds:
            for side, language in enumerate(self._languages):
                texts = [pair[side] for pair in pairs]
                odds = self._odds.against(texts, language)
                is_other = odds > math.log(self._thresholds["language"])
                verdicts[(verdicts == 0) & is_other] = CODES["language"]
        lines = (
            f"{place}\t{source}\t{target}\n"
            for (place, _, _), (source, target) in zip(chunk, pairs, strict=True)
        )
        marks["lengths"] = [
            [(len(split_words(text)), len(text)) for text in pair] for pair in pairs
        ]
        hashes = np.frombuffer(b"".join(_hash(*pair) for pair in pairs), "<u8")
        marks["hashes"] = hashes.reshape(-1, 2)
        return Checked(marks, report, "".join(lines))

    def _repair(
        self, place: str, source: str, target: str, report: Report
    ) -> tuple[str, str]:
        """Returns the repaired texts of a pair."""
        texts = source, target
        for name, repair in self._repairs.items():
            before = texts
            texts = (
                repair(texts[0], self._languages[0]),
                repair(texts[1], self._languages[1]),
            )
            if before != texts:
                side = int(before[0] == texts[0])
                report.add(report.repaired, name, (place, before[side], texts[side]))
        return join_spaces(texts[0]), join_spaces(texts[1])

    def _find_rule(self, source: str, target: str) -> int:
        """Returns the code of the first rule that drops a pair, or 0."""
        for code, drops, threshold in self._rules:
            if drops(source, target, threshold):
                return code
        return 0


def _hash(source: str, target: str) -> bytes:
    """Returns 8 bytes for the pair and 8 bytes for the letters of the source."""
    letters = _NOT_LETTERS.sub("", source.casefold()) or source
    return b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in (f"{source}\t{target}", letters)
    )
