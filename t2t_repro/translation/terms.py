"""Lexical constraints from a file: source terms and their required translations."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translation import Translation
from t2t_repro.translation.translator import Translator
from t2t_repro.translation.wrapper import Progress, TranslatorWrapper


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


class TermTranslator(TranslatorWrapper):
    """Translates with lexical constraints.

    If a line contains a source term as whole words in the same spelling, its
    translation contains the target term once. If source terms overlap, the longest has
    priority. Lines without terms are translated without constraints, so that terms do
    not change them.

    Args:
        translator: Translator with beam search.
        terms: Target terms by source term, or the target terms of each line. Lines
            must then be translated in their order.

    Attributes:
        needed: Number of target terms required so far.
        met: Number of those terms that appear in the translations.
        unwritable: Target terms that the vocabulary cannot spell and ignores.
    """

    translator: Translator

    def __init__(
        self,
        translator: Translator,
        terms: Mapping[str, str] | Sequence[Sequence[str]],
    ) -> None:
        targets: Iterable[str]
        if isinstance(terms, Mapping):
            self._terms, self._rows = dict(terms), None
            targets = self._terms.values()
        else:
            self._terms, self._rows = {}, iter(terms)
            targets = itertools.chain.from_iterable(terms)
        digest = hashlib.sha256(repr(sorted(self._terms.items())).encode())
        super().__init__(translator, f"terms:{digest.hexdigest()}:")
        self.needed = 0
        self.met = 0
        self._pattern = whole_words(self._terms)
        targets = list(dict.fromkeys(targets))
        self._written = translator.written_terms(targets)
        self.unwritable = [term for term in targets if term not in self._written]

    def required_terms(self, line: str) -> list[str]:
        """Returns the target terms that the translation of a line must contain."""
        # Any white space between the words of a term counts as one space.
        sources = self._pattern.findall(" ".join(line.split()))
        return list(dict.fromkeys(self._terms[source] for source in sources))

    def summary(self) -> str:
        """Returns a line with the number of required terms."""
        return (
            f"{self.met:,} of {self.needed:,} required terms appear in the translations"
        )

    def _translate(
        self, lines: Sequence[str], batch_size: int, progress: Progress
    ) -> list[Translation]:
        if self._rows is None:
            required = [self.required_terms(line) for line in lines]
        else:
            required = [list(row) for row in itertools.islice(self._rows, len(lines))]
        spelled = [[term for term in row if term in self._written] for row in required]
        translations: dict[int, Translation] = {}
        for constrained in (False, True):
            indices = [n for n, row in enumerate(spelled) if bool(row) is constrained]
            part = self.translator.translate_window(
                [lines[n] for n in indices],
                batch_size,
                progress,
                terms=[spelled[n] for n in indices] if constrained else None,
            )
            for n, translation in zip(indices, part, strict=True):
                missing = missing_terms(required[n], translation.text, self._written)
                translations[n] = translation._replace(missing_terms=tuple(missing))
                self.needed += len(spelled[n])
                self.met += sum(term not in missing for term in spelled[n])
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
