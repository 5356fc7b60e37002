"""Marian's beam search (translator/beam_search.cpp, history.h).

Each step keeps the best `beam` candidates, and each finished hypothesis reduces the
beam by one. A hypothesis that is cut at the limit counts as finished. The
search continues until the beam is empty; the stop rule only skips steps that cannot
change the n-best list.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from t2t_repro.decoding.algorithms.t2t import T2TSearch
from t2t_repro.decoding.candidates import NEVER, Candidates
from t2t_repro.decoding.stopping import power_penalty


@dataclass(frozen=True)
class MarianSearch(T2TSearch):
    """Marian's search; the score is (log p - word_penalty * n) / n^alpha."""

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks: the beam size."""
        return self.beam_size

    def penalty(self, length: Any) -> Any:
        """Computes length^alpha."""
        return power_penalty(length, self.alpha)

    def eligible(
        self, candidates: Candidates, ends: tf.Tensor, scores: tf.Tensor
    ) -> Candidates:
        """Keeps as many candidates as the beam has unfinished hypotheses."""
        rank = tf.range(tf.shape(ends)[1])
        places = tf.math.count_nonzero(tf.equal(scores, NEVER), 1, True, tf.int32)
        log_probs = tf.where(rank >= places, NEVER, candidates.log_probs)
        return candidates._replace(log_probs=log_probs)

    def finishing(
        self, ends: tf.Tensor, length: tf.Tensor, limits: tf.Tensor
    ) -> tf.Tensor:
        """Returns the candidates with EOS, and all candidates at the limit."""
        return ends | (length >= limits)[:, None]
