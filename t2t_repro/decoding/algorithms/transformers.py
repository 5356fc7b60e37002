"""Beam search of Hugging Face Transformers (generation/utils.py:_beam_search).

Only the best `beam` of the 2 * beam candidates may finish. The search ends when a full
beam of finished hypotheses is at least as good as the best unfinished one
(`early_stopping=False`). At the limit EOS is forced, at no cost.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from t2t_repro.decoding.algorithms.t2t import T2TSearch
from t2t_repro.decoding.candidates import NEVER, Candidates, only_eos
from t2t_repro.decoding.stopping import SearchStatus, power_penalty


@dataclass(frozen=True)
class TransformersSearch(T2TSearch):
    """Transformers' search; the score is log p / n^alpha."""

    def penalty(self, length: Any) -> Any:
        """Computes length^alpha."""
        return power_penalty(length, self.alpha)

    def eligible(
        self, candidates: Candidates, ends: tf.Tensor, scores: tf.Tensor
    ) -> Candidates:
        """Drops candidates with EOS that are not among the best `beam`."""
        dropped = ends & (tf.range(tf.shape(ends)[1]) >= self.beam_size)
        log_probs = tf.where(dropped, NEVER, candidates.log_probs)
        return candidates._replace(log_probs=log_probs)

    def done(self, status: SearchStatus) -> tf.Tensor:
        """Compares the worst of a full beam with the best unfinished hypothesis."""
        if self.word_penalty:
            return super().done(status)
        length, limits, log_probs, scores = status
        reachable = log_probs[:, 0] / self.penalty(length)
        return (length >= limits) | (scores[:, -1] >= reachable)

    def force_end(
        self, logits: tf.Tensor, length: tf.Tensor, limits: tf.Tensor
    ) -> tf.Tensor:
        """Forces EOS at the limit."""
        return only_eos(logits, (length >= limits)[:, None])
