"""Terms that must appear in a translation wherever the source has theirs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translator import Translation, Translator


def read_terms(path: Path) -> dict[str, str]:
    """Reads a file of terms: a source term, a tab and a target term in each line.

    Raises:
        UserError: the file cannot be read, is empty, or a line is something else.
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
            raise UserError(f"{path}:{number}: the source term {source!r} comes twice")
        terms[source] = target
    return terms


class TermTranslator:
    """Translates lines, and looks like a translator to what reads and writes files.

    Where a source term stands in a line as whole words, spelled alike, its target term
    stands in the translation, once. Of terms that overlap the longer one counts. Lines
    without a term are translated as ever.

    Args:
        translator: of a beam search.
        terms: target terms by their source terms.

    Attributes:
        needed: terms that the lines so far have asked for.
        met: of those, how many their translations hold.
    """

    def __init__(self, translator: Translator, terms: Mapping[str, str]) -> None:
        self.search = translator.search
        self.max_input_length = translator.max_input_length
        self.needed = 0
        self.met = 0
        self._translator = translator
        self._terms = dict(terms)
        self._pattern = whole_words(self._terms)

    def fingerprint(self) -> str:
        """Identifies the weights, the vocabulary and the terms."""
        terms = hashlib.sha256(repr(sorted(self._terms.items())).encode()).hexdigest()
        return f"terms:{terms}:{self._translator.fingerprint()}"

    def asked_of(self, line: str) -> list[str]:
        """Returns the target terms that a line asks for, each once."""
        # Spaces of any kind and number are as one.
        found = self._pattern.findall(" ".join(line.split()))
        return list(dict.fromkeys(self._terms[term] for term in found))

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
        asked = [self.asked_of(line) for line in lines]
        done: dict[int, Translation] = {}
        for some in (False, True):
            places = [n for n, terms in enumerate(asked) if bool(terms) == some]
            found = self._translator.translate_window(
                [lines[n] for n in places],
                batch_size,
                progress,
                terms=[asked[n] for n in places] if some else None,
            )
            done |= zip(places, found, strict=True)
        for n, terms in enumerate(asked):
            self.needed += len(terms)
            self.met += sum(
                whole_words([term]).search(done[n].text) is not None for term in terms
            )
        return [done[n] for n in range(len(lines))]


def whole_words(terms: Mapping[str, str] | Sequence[str]) -> re.Pattern[str]:
    """Returns what finds any of the terms where they are whole words, longest first."""
    longest_first = sorted(terms, key=len, reverse=True)
    either = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)")
