"""Stretches of pairs whose sides do not belong together, found by their words.

Words of a translation occur with words of its source more often than by chance. The
corpus itself shows which (pointwise mutual information, Church & Hanks 1990, section
3). Pairs with exchanged targets show the scores of wrong pairs, and Viterbi's algorithm
finds stretches of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from t2t_repro.cleaning.pair_rules import split_words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TextPair = tuple[str, str]

MOST_SAMPLED = 30_000
"""Maximum number of pairs that the scores are learned from."""
FEWEST_SAMPLED = 1_000
"""Minimum number of pairs; fewer do not show which words belong together."""

_STEM = 5  # Prefixes join the inflected forms of a word.
_MOST_STEMS = 50  # Bounds the time and memory of a long pair.
_MOST_ODDS = 2.0  # The default threshold, log 1000 = 6.9, then needs four pairs.
_ENOUGH_STEMS = 4  # Pairs with fewer known stems are weaker evidence.
_SMOOTHING = 1  # Pseudo-count of a combination of words and of its expected count.


class PairScorer:
    """Log odds that the sides of a pair do not belong together.

    Args:
        sample: At least `FEWEST_SAMPLED` pairs, from which the scores are learned.
    """

    def __init__(self, sample: Sequence[TextPair]) -> None:
        self._pairs = len(sample)
        self._numbers = [_number_stems(texts) for texts in zip(*sample, strict=True)]
        sides = [self._encode(sample, side) for side in (0, 1)]
        self._counts = [
            np.bincount(stems, minlength=len(numbers))
            for (stems, _), numbers in zip(sides, self._numbers, strict=True)
        ]
        keys = self._combine(sides)[0]
        self._keys, self._together = np.unique(keys, return_counts=True)
        # Neighbors may be alike, so a target moves by half of the corpus.
        half = len(sample) // 2
        sources, targets = zip(*sample, strict=True)
        exchanged = list(zip(sources, targets[half:] + targets[:half], strict=True))
        right = self._score(sides, np.ones(len(sample)))
        sides = [self._encode(exchanged, side) for side in (0, 1)]
        wrong = self._score(sides, np.zeros(len(sample)))
        self._middle = (right.mean() + wrong.mean()) / 2
        self._slope = (right.mean() - wrong.mean()) * 2 / (right.var() + wrong.var())

    def log_odds(self, pairs: Sequence[TextPair], sampled: Floats) -> Floats:
        """Returns the log odds of each pair, float64 (pairs,).

        Args:
            pairs: Source and target texts.
            sampled: float64 (pairs,), 1 for a pair of the sample, which would otherwise
                confirm itself, and 0 for others.
        """
        sides = [self._encode(pairs, side) for side in (0, 1)]
        odds = (self._middle - self._score(sides, sampled)) * self._slope
        known = np.minimum(sides[0][1], sides[1][1])
        return np.minimum(odds, _MOST_ODDS) * np.minimum(known / _ENOUGH_STEMS, 1)

    def _score(self, sides: Sequence[tuple[Ints, Ints]], sampled: Floats) -> Floats:
        """Returns the mean association of the stems of each pair, float64 (pairs,)."""
        keys, owners, tokens = self._combine(sides)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        own = sampled[owners]
        together = np.where(self._keys[places] == keys, self._together[places], 0) - own
        counts = [
            self._counts[side][sides[side][0][tokens[side]]] - own for side in (0, 1)
        ]
        expected = counts[0] * counts[1] / self._pairs
        ratios = (together + _SMOOTHING) / (expected + _SMOOTHING)
        score = np.zeros(len(sampled))
        for side in (0, 1):
            lengths = sides[side][1]
            best = np.ones(lengths.sum())  # Below 1, words occur together by chance.
            np.maximum.at(best, tokens[side], ratios)
            owner = np.repeat(np.arange(len(sampled)), lengths)
            sums = np.bincount(owner, np.log(best), len(sampled))
            score += sums / np.maximum(lengths, 1)
        return score

    def _encode(self, pairs: Sequence[TextPair], side: int) -> tuple[Ints, Ints]:
        """Returns the numbers of the known stems of all texts, and their counts."""
        numbers = self._numbers[side]
        texts = [
            [numbers[stem] for stem in _split_stems(pair[side]) if stem in numbers]
            for pair in pairs
        ]
        lengths = np.array([len(text) for text in texts], np.int64)
        return np.array([n for text in texts for n in text], np.int64), lengths

    def _combine(
        self, sides: Sequence[tuple[Ints, Ints]]
    ) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
        """Combines each source stem of a pair with each of its target stems.

        Returns:
            int64 (combinations,): the number of the combination, the pair, and the
            places of both stems.
        """
        (sources, rows), (targets, columns) = sides
        owners = np.repeat(np.arange(len(rows)), rows * columns)
        starts = np.cumsum(rows * columns) - rows * columns
        row, column = np.divmod(
            np.arange(len(owners)) - starts[owners], columns[owners]
        )
        row += (np.cumsum(rows) - rows)[owners]
        column += (np.cumsum(columns) - columns)[owners]
        keys = sources[row] * len(self._numbers[1]) + targets[column]
        return keys, owners, (row, column)


def _split_stems(text: str) -> list[str]:
    """Returns the distinct stems of a text, in order."""
    words = split_words(text.casefold())
    stems = (word.strip(".,;:!?\"'()„“”«»")[:_STEM] for word in words)
    return list(dict.fromkeys(stem for stem in stems if stem))[:_MOST_STEMS]


def _number_stems(texts: Iterable[str]) -> dict[str, int]:
    """Numbers the stems of at least two texts."""
    counts = Counter(stem for text in texts for stem in _split_stems(text))
    known = sorted(stem for stem, count in counts.items() if count > 1)
    return {stem: number for number, stem in enumerate(known)}


def find_stretches(log_odds: Iterable[float], threshold: float) -> list[bool]:
    """Returns which pairs are in stretches that do not belong together.

    Args:
        log_odds: Log odds of consecutive pairs, from `PairScorer.log_odds`.
        threshold: Product of the odds that a stretch must exceed.
    """
    enter = math.log(threshold)
    outside, inside = 0.0, -math.inf  # Best sums that end outside and in a stretch.
    choices = []
    for odds in log_odds:
        choices.append((inside > outside, outside - enter > inside))
        outside, inside = max(outside, inside), max(inside, outside - enter) + odds
    stretches = []
    is_inside = inside > outside
    for leaves, enters in reversed(choices):
        stretches.append(is_inside)
        is_inside = not enters if is_inside else leaves
    return stretches[::-1]
