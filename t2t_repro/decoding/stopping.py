"""The length penalty, and when a sentence's search is over.

For alpha >= 0 the rule is exact. A hypothesis of log probability p <= 0 can only lose
probability as it grows, and its penalty at any length is at most the penalty at the
sentence's limit, so no score that it can still reach exceeds p / penalty(limit). When
the worst of the wanted finished hypotheses is at least that good for the best p, the
wanted hypotheses are final.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

T2T, MARIAN, TRANSFORMERS, OPENNMT = ALGORITHMS = (
    *("t2t", "marian"),
    *("transformers", "opennmt"),
)
"""Whose rules a beam search follows; see `beam_search.beam_search`."""


def length_penalty(length: Any, alpha: float) -> Any:
    """Computes ((5 + length) / 6)^alpha, the divisor of log probabilities.

    Paper section 6.1 after Wu et al. 2016 (arXiv:1609.08144), equation 14.

    Args:
        length: generated symbols, EOS counted: a number, an array, or a tensor, which
            gives float32 of its shape.
        alpha: 0 for plain log probabilities; larger ones favour long translations.
    """
    if tf.is_tensor(length):
        length = tf.cast(length, tf.float32)
    return ((5 + length) / 6) ** alpha


@dataclass(frozen=True)
class Scoring:
    """How the log probability of a hypothesis becomes its score.

    It is divided by ((5 + n) / 6)^alpha, or in Marian's and Transformers' search by
    n^alpha, of n symbols, EOS counted; Marian first takes `word_penalty` off for each.

    Source: Marian's translator/history.h; Transformers' generation/utils.py.
    """

    alpha: float
    algorithm: str = T2T
    word_penalty: float = 0.0

    def penalty(self, length: Any) -> Any:
        """Returns the divisor, of a number, an array, or a tensor as float32."""
        if self.algorithm in (T2T, OPENNMT):
            return length_penalty(length, self.alpha)
        if tf.is_tensor(length):
            length = tf.cast(length, tf.float32)
        return length**self.alpha

    def score(self, log_prob: Any, length: Any) -> Any:
        """Returns the score of a log probability, both numbers, arrays or tensors."""
        if self.word_penalty:
            words = tf.cast(length, tf.float32) if tf.is_tensor(length) else length
            log_prob -= self.word_penalty * words
        return log_prob / self.penalty(length)

    def log_prob(self, score: Any, length: Any) -> Any:
        """Returns the log probability of a score: numbers, or NumPy arrays."""
        return score * self.penalty(length) + self.word_penalty * length


def sentences_done(
    length: tf.Tensor,
    limits: tf.Tensor,
    log_probs: tf.Tensor,
    scores: tf.Tensor,
    *,
    alpha: float,
    nbest: int,
    algorithm: str = T2T,
) -> tf.Tensor:
    """Decides for each sentence whether its `nbest` best are final: bool (batch,).

    Args:
        length: int32 (), symbols generated so far.
        limits: int32 (batch,), the most symbols of each sentence, EOS counted.
        log_probs: float32 (batch, beam), the unfinished hypotheses, best first.
        scores: float32 (batch, beam), the finished ones, normalised, best first.
        alpha: exponent of the length penalty, at least 0.
        nbest: how many hypotheses are wanted.
        algorithm: whose length penalty it is.
    """
    reachable = log_probs[:, 0] / Scoring(alpha, algorithm).penalty(limits)
    return (length >= limits) | (scores[:, nbest - 1] >= reachable)


def batch_done_tensor2tensor(
    length: tf.Tensor,
    limits: tf.Tensor,
    log_probs: tf.Tensor,
    scores: tf.Tensor,
    *,
    alpha: float,
    nbest: int,
) -> tf.Tensor:
    """Decides for the whole batch at once, as tensor2tensor does.

    # T2T: all sentences go on until the last is done, which can change the others'
    results; for n-best the worst finished score of the whole batch is compared
    (beam_search.py:_is_not_finished), hence its n-best is several times slower.

    Args and returns as `sentences_done`; all elements are equal.
    """
    reachable = log_probs[:, 0] / length_penalty(limits, alpha)
    finished = scores[:, 0] if nbest == 1 else tf.reduce_min(scores)
    proven = tf.reduce_all(finished > reachable)
    return (length >= limits) | proven
