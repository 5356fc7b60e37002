"""Length penalties, and stop rules for a sentence's search.

For alpha >= 0 the rule is exact. A hypothesis of log probability p <= 0 can only lose
probability as it grows, and its penalty at any length is at most the penalty at the
sentence's limit, so no score that it can still reach exceeds p / penalty(limit). If the
worst of the `nbest` best finished hypotheses scores at least that for the largest p,
these hypotheses are final.
"""

from typing import Any, NamedTuple

import tensorflow as tf


def length_penalty(length: Any, alpha: float) -> Any:
    """Computes ((5 + length) / 6)^alpha, the divisor of log probabilities.

    Paper section 6.1 after Wu et al. 2016 (arXiv:1609.08144), equation 14.

    Args:
        length: Number of tokens, EOS included: a number, an array, or a tensor, for
            which the result is float32.
        alpha: 0 for plain log probabilities; larger values favor long translations.
    """
    if tf.is_tensor(length):
        length = tf.cast(length, tf.float32)
    return ((5 + length) / 6) ** alpha


def power_penalty(length: Any, alpha: float) -> Any:
    """Computes length^alpha, the divisor in Marian's and Transformers' search.

    The arguments and the result are those of `length_penalty`.
    """
    if tf.is_tensor(length):
        length = tf.cast(length, tf.float32)
    return length**alpha


class SearchStatus(NamedTuple):
    """The tensors that a stop rule depends on.

    Attributes:
        length: int32 (), tokens generated so far.
        limits: int32 (batch,), the maximum number of tokens, EOS included.
        log_probs: float32 (batch, beam), of the unfinished hypotheses, best first.
        scores: float32 (batch, beam), of the finished ones, normalized, best first.
    """

    length: tf.Tensor
    limits: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor


def sentences_done(status: SearchStatus, penalties: tf.Tensor, nbest: int) -> tf.Tensor:
    """Decides for each sentence whether its `nbest` best are final: bool (batch,).

    Args:
        status: The status of the search.
        penalties: float32 (batch,), the length penalty at the limits, alpha >= 0.
        nbest: Number of hypotheses to find.
    """
    length, limits, log_probs, scores = status
    reachable = log_probs[:, 0] / penalties
    return (length >= limits) | (scores[:, nbest - 1] >= reachable)


def batch_done_tensor2tensor(
    status: SearchStatus, penalties: tf.Tensor, nbest: int
) -> tf.Tensor:
    """Decides for the whole batch at once, as tensor2tensor does.

    # T2T: all sentences continue until the last is done, which can change the others'
    results; for n-best the worst finished score of the whole batch is compared
    (beam_search.py:_is_not_finished), so its n-best is several times slower.

    The arguments and the result are those of `sentences_done`; all elements are equal.
    """
    length, limits, log_probs, scores = status
    reachable = log_probs[:, 0] / penalties
    finished = scores[:, 0] if nbest == 1 else tf.reduce_min(scores)
    proven = tf.reduce_all(finished > reachable)
    return (length >= limits) | proven
