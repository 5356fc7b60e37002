"""Mistakes in a corpus that no line shows: swapped sides, test pairs to train on.

No training reports them: it ends with a figure that is too low, or too good.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from t2t_repro.problems.problem import Problem

# Lines of a split that a profile is made of; a few hundred tell languages apart.
_SAMPLE = 2000
# By how much more the swapped sides must resemble the training split's. Texts of one
# language and domain have a similarity above 0.9, English and German about 0.5.
_MARGIN = 0.1
_GRAM = 3

Pair = tuple[str, str]
Profile = Counter[str]


@dataclass
class _Sides:
    """How often each sequence of three characters occurs on either side."""

    source: Profile = field(default_factory=Counter)
    target: Profile = field(default_factory=Counter)

    def add(self, pair: Pair) -> None:
        """Counts a pair."""
        for profile, text in zip((self.source, self.target), pair, strict=True):
            profile.update(_grams(text))


def findings(problem: Problem, held_out: Sequence[str]) -> list[str]:
    """Looks for sides that are swapped and for pairs that are learned by heart.

    Args:
        problem: the corpus; its training split is read once.
        held_out: the splits to compare with the training split.

    Returns:
        What was found, a line each.

    Raises:
        UserError: a split cannot be read.
    """
    train, found = _Sides(), []
    pairs = {split: list(problem.pairs(split)) for split in held_out}
    wanted = set().union(*pairs.values())
    seen: set[Pair] = set()
    for pair in _sampled(problem.pairs("train"), train):
        if pair in wanted:
            seen.add(pair)
    for split in held_out:
        sides = _Sides()
        for _ in _sampled(iter(pairs[split]), sides):
            pass
        if _look_swapped(train, sides):
            found.append(
                f"the source side of the {split} split looks like the target side of "
                f"the training data, and the other way round: are its "
                f"{problem.source_lang} and {problem.target_lang} files swapped?"
            )
        known = sum(pair in seen for pair in pairs[split])
        if known:
            found.append(
                f"{known:,} of {len(pairs[split]):,} {split} pairs "
                f"({known / len(pairs[split]):.1%}) are in the training data, too; "
                "what is scored on them was learned by heart"
            )
    return found


def _sampled(pairs: Iterator[Pair], sides: _Sides) -> Iterator[Pair]:
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


def _similarity(one: Profile, other: Profile) -> float:
    """Returns the cosine of two vectors of counts; 0 if one is empty."""
    norms = math.prod(sum(n * n for n in p.values()) for p in (one, other))
    dot = sum(count * other[gram] for gram, count in one.items())
    return dot / math.sqrt(norms) if norms else 0.0
