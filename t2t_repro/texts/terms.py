"""Lexical constraints from a file: source terms and their required translations."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.texts.translation import Translation


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


class RequiredTerms:
    """Lexical constraints of lines, and the number that their translations contain.

    If a line contains a source term as whole words in the same spelling, its
    translation contains the target term once. If source terms overlap, the longest has
    priority.

    Args:
        terms: Target terms by source term, or the target terms of each line. Lines
            must then be translated in their order.
        spell: Function that returns how translations spell terms, without those that
            the vocabulary cannot spell; see `Translator.spell_terms`.

    Attributes:
        fingerprint: Text that identifies the terms.
        needed: Number of target terms required so far.
        met: Number of those terms that appear in the translations.
        unwritable: Target terms that the vocabulary cannot spell and ignores.
    """

    def __init__(
        self,
        terms: Mapping[str, str] | Sequence[Sequence[str]],
        spell: Callable[[Sequence[str]], dict[str, str]],
    ) -> None:
        targets: Iterable[str]
        if isinstance(terms, Mapping):
            self._terms, self._rows = dict(terms), None
            targets = self._terms.values()
        else:
            self._terms, self._rows = {}, iter(terms)
            targets = itertools.chain.from_iterable(terms)
        digest = hashlib.sha256(repr(sorted(self._terms.items())).encode())
        self.fingerprint = f"terms:{digest.hexdigest()}:"
        self.needed = 0
        self.met = 0
        self._pattern = whole_words(self._terms)
        targets = list(dict.fromkeys(targets))
        self._spelled = spell(targets)
        self.unwritable = [term for term in targets if term not in self._spelled]

    def find_terms(self, lines: Sequence[str]) -> list[list[str]]:
        """Returns the target terms that the translations of lines must contain."""
        if self._rows is not None:
            return [list(row) for row in itertools.islice(self._rows, len(lines))]
        # Any white space between the words of a term counts as one space.
        found = (self._pattern.findall(" ".join(line.split())) for line in lines)
        return [
            list(dict.fromkeys(self._terms[source] for source in sources))
            for sources in found
        ]

    def select_spelled(self, required: Sequence[Sequence[str]]) -> list[list[str]]:
        """Returns the terms of each line that the vocabulary can spell."""
        return [[term for term in row if term in self._spelled] for row in required]

    def check(
        self, required: Sequence[Sequence[str]], translations: Sequence[Translation]
    ) -> list[Translation]:
        """Adds the missing terms of each translation, and counts the others.

        Args:
            required: Result of `find_terms`.
            translations: Translations of the same lines.
        """
        checked = []
        for terms, translation in zip(required, translations, strict=True):
            missing = find_missing_terms(terms, translation.text, self._spelled)
            checked.append(translation._replace(missing_terms=tuple(missing)))
            spelled = [term for term in terms if term in self._spelled]
            self.needed += len(spelled)
            self.met += sum(term not in missing for term in spelled)
        return checked

    def summary(self) -> str:
        """Returns a line with the number of required terms."""
        return (
            f"{self.met:,} of {self.needed:,} required terms appear in the translations"
        )


def find_missing_terms(
    terms: Sequence[str], text: str, spelled: Mapping[str, str]
) -> list[str]:
    """Returns the terms that a translation does not contain as whole words.

    `spelled` is the result of `Translator.spell_terms`.
    """
    return [
        term
        for term in terms
        if term not in spelled or not whole_words([spelled[term]]).search(text)
    ]


def whole_words(terms: Mapping[str, str] | Sequence[str]) -> re.Pattern[str]:
    """Returns a pattern that matches any term as whole words, longer terms first."""
    longest_first = sorted(terms, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first)) or "(?!)"  # no match
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")
