"""Mistakes in a corpus that no line shows: swapped sides, test pairs to train on.

No training reports them: it ends with a figure that is too low, or too good.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from t2t_repro.problems.problem import Problem

# Lines of a split that a profile is made of; a few hundred tell languages apart.
_SAMPLE = 2000
# By how much more the swapped sides must resemble the training split's. Texts of one
# language and domain have a similarity above 0.9, English and German about 0.5.
_MARGIN = 0.1
_GRAM = 3


@dataclass
class _Sides:
    """How often each sequence of three characters occurs on either side."""

    source: Counter[str] = field(default_factory=Counter)
    target: Counter[str] = field(default_factory=Counter)

    def add(self, pair: tuple[str, str]) -> None:
        """Counter[str] a pair."""
        for profile, text in zip((self.source, self.target), pair, strict=True):
            profile.update(_grams(text))


class Checks:
    """Looks for sides that are swapped and for pairs that are learned by heart.

    The splits `held_out`, to compare with the training split, are read at once; one
    that cannot be read is a UserError.
    """

    def __init__(self, problem: Problem, held_out: Sequence[str]) -> None:
        self._problem = problem
        self._held_out = {split: list(problem.pairs(split)) for split in held_out}
        self._wanted = set().union(*self._held_out.values())
        self._seen: set[tuple[str, str]] = set()
        self._train: _Sides | None = None

    def watched(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yields the training pairs, which somebody else needs, and looks at them."""
        self._train = _Sides()
        for pair in _sampled(iter(pairs), self._train):
            if pair in self._wanted:
                self._seen.add(pair)
            yield pair

    def findings(self) -> list[str]:
        """Returns what was found, a line each; reads the training split if need be."""
        if self._train is None:
            deque(self.watched(self._problem.pairs("train")), maxlen=0)
        assert self._train is not None
        found = []
        for split, pairs in self._held_out.items():
            sides = _Sides()
            deque(_sampled(iter(pairs), sides), maxlen=0)
            if _look_swapped(self._train, sides):
                found.append(
                    f"the source side of the {split} split looks like the target side "
                    "of the training data, and the other way round: are its "
                    f"{self._problem.source_lang} and {self._problem.target_lang} "
                    "files swapped?"
                )
            known = sum(pair in self._seen for pair in pairs)
            if known:
                found.append(
                    f"{known:,} of {len(pairs):,} {split} pairs "
                    f"({known / len(pairs):.1%}) are in the training data, too; "
                    "what is scored on them was learned by heart"
                )
        return found


def _sampled(
    pairs: Iterator[tuple[str, str]], sides: _Sides
) -> Iterator[tuple[str, str]]:
    """Yields all pairs, having counted the first."""
    for pair in islice(pairs, _SAMPLE):
        sides.add(pair)
        yield pair
    yield from pairs


def _grams(text: str) -> list[str]:
    """Returns the sequences of three characters of a line, its ends spaces."""
    padded = f" {text.lower()[:10_000]} "
    return [padded[i : i + _GRAM] for i in range(len(padded) - _GRAM + 1)]


def _look_swapped(train: _Sides, other: _Sides) -> bool:
    """Whether two sides resemble the training split's more when swapped.

    Cavnar and Trenkle 1994 tell languages apart by the same counts.
    """
    straight = _similarity(train.source, other.source) + _similarity(
        train.target, other.target
    )
    crossed = _similarity(train.source, other.target) + _similarity(
        train.target, other.source
    )
    return crossed > straight + _MARGIN


def _similarity(one: Counter[str], other: Counter[str]) -> float:
    """Returns the cosine of two vectors of counts; 0 if one is empty."""
    norms = math.prod(sum(n * n for n in p.values()) for p in (one, other))
    dot = sum(count * other[gram] for gram, count in one.items())
    return dot / math.sqrt(norms) if norms else 0.0
