"""Lexical constraints from a file: source terms and their required translations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translation import Translation
from t2t_repro.translation.translator import Translator


def read_terms(path: Path) -> dict[str, str]:
    """Reads a file with a source term, a tab and a target term per line.

    Raises:
        UserError: The file cannot be read, is empty, or has an invalid line.
    """
    terms: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        parts = [" ".join(part.split()) for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise UserError(
                f"{path}:{number}: {line[:80]!r} is not a source term, a tab and a "
                "target term"
            )
        source, target = parts
        if source in terms:
            raise UserError(
                f"{path}:{number}: the source term {source!r} occurs twice; remove one "
                "of the lines"
            )
        terms[source] = target
    return terms


class TermTranslator:
    """Translates with lexical constraints; can replace a `Translator`.

    If a line contains a source term as whole words in the same spelling, its
    translation contains the target term once. If source terms overlap, the longest has
    priority. Lines without terms are translated without constraints.

    Args:
        translator: Translator with beam search.
        terms: Target terms by source term.

    Attributes:
        needed: Number of target terms required so far.
        met: Number of those terms that appear in the translations.
        unwritable: Target terms that the vocabulary cannot spell and ignores.
    """

    def __init__(self, translator: Translator, terms: Mapping[str, str]) -> None:
        self.search = translator.search
        self.max_input_length = translator.max_input_length
        self.needed = 0
        self.met = 0
        self._translator = translator
        self._terms = dict(terms)
        self._pattern = whole_words(self._terms)
        targets = list(dict.fromkeys(self._terms.values()))
        self._written = translator.written_terms(targets)
        self.unwritable = [term for term in targets if term not in self._written]

    def fingerprint(self) -> str:
        """Identifies the weights, the vocabulary and the terms."""
        terms = hashlib.sha256(repr(sorted(self._terms.items())).encode()).hexdigest()
        return f"terms:{terms}:{self._translator.fingerprint()}"

    def required_terms(self, line: str) -> list[str]:
        """Returns the target terms that the translation of a line must contain."""
        # Any white space between the words of a term counts as one space.
        sources = self._pattern.findall(" ".join(line.split()))
        return list(dict.fromkeys(self._terms[source] for source in sources))

    def translate_window(
        self,
        lines: Sequence[str],
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[Translation]:
        """Translates a list of lines; see `Translator.translate_window`.

        `prefixes` must be None.
        """
        assert prefixes is None
        required = [
            [term for term in self.required_terms(line) if term in self._written]
            for line in lines
        ]
        translations = translate_with_terms(
            self._translator, lines, required, batch_size, progress
        )
        for terms, translation in zip(required, translations, strict=True):
            self.needed += len(terms)
            missing = missing_terms(terms, translation.text, self._written)
            self.met += len(terms) - len(missing)
        return translations


def translate_with_terms(
    translator: Translator,
    lines: Sequence[str],
    required: Sequence[Sequence[str]],
    batch_size: int = 32,
    progress: Callable[[int, int], object] | None = None,
) -> list[Translation]:
    """Translates lines with the terms that each requires.

    Lines without terms are translated without constraints, so that terms do not change
    them. The other arguments and the result are those of `Translator.translate_window`.
    """
    translations: dict[int, Translation] = {}
    for constrained in (False, True):
        indices = [n for n, row in enumerate(required) if bool(row) is constrained]
        part = translator.translate_window(
            [lines[n] for n in indices],
            batch_size,
            progress,
            terms=[required[n] for n in indices] if constrained else None,
        )
        translations |= zip(indices, part, strict=True)
    return [translations[n] for n in range(len(lines))]


def missing_terms(
    terms: Sequence[str], text: str, written: Mapping[str, str]
) -> list[str]:
    """Returns the terms that a translation does not contain as whole words.

    `written` is the result of `Translator.written_terms`.
    """
    return [
        term
        for term in terms
        if term not in written or not whole_words([written[term]]).search(text)
    ]


def whole_words(terms: Mapping[str, str] | Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern that matches any term as whole words, longer terms first."""
    longest_first = sorted(terms, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first)) or "(?!)"  # no match
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")
