"""Mixtures: several corpora whose batches alternate by weight.

Every batch has pairs of one corpus. The corpora take turns in a fixed order, so that
the corpus of a step and the batch of that corpus depend only on the step's number.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


@dataclass(frozen=True)
class Mixture:
    """Order in which corpora provide the batches of the steps.

    Attributes:
        sizes: Number of pairs of each corpus. Pair numbers are consecutive over all
            corpora.
        weights: Weight of each corpus, from 1: its share of the steps.
    """

    sizes: tuple[int, ...]
    weights: tuple[int, ...]

    def pairs(self, corpus: int) -> slice:
        """Returns the range of a corpus's pair numbers."""
        first = sum(self.sizes[:corpus])
        return slice(first, first + self.sizes[corpus])

    def corpus(self, step: int) -> int:
        """Returns the number of the corpus of a step; both count from 0."""
        return int(self._turns[step % len(self._turns)])

    def batches_before(self, step: int, corpus: int) -> int:
        """Returns the number of batches that a corpus provides before a step."""
        periods, place = divmod(step, len(self._turns))
        is_own = self._turns == corpus
        return int(periods * is_own.sum() + is_own[:place].sum())

    @cached_property
    def _turns(self) -> IntArray:
        """Corpus of each step of a period, int64 (steps,).

        The next step goes to the corpus that is furthest behind its share. No corpus is
        ever a whole batch ahead of its share, so that the shares of a period are exact.
        """
        weights = np.array(self.weights) // math.gcd(*self.weights)
        turns, counts = [], np.zeros(len(weights), np.int64)
        for step in range(1, int(weights.sum()) + 1):
            turns.append(int(np.argmax(weights * step - counts * weights.sum())))
            counts[turns[-1]] += 1
        return np.array(turns)
