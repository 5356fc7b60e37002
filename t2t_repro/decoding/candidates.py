"""The best continuations of a sentence's hypotheses by one token."""

from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.decoder import EOS_ID
from t2t_repro.system.dispatch import dispatched

NEVER = float("-inf")
"""The log probability of forbidden tokens and missing hypotheses."""


@dispatched
def top_k(values: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the k largest elements of each row.

    Args:
        values: float (rows, columns).
        k: Number of elements; all columns if there are fewer.

    Returns:
        values: float (rows, k), descending; ties are broken by the lower column.
        columns: int32 (rows, k).
    """
    columns = values.shape[-1]
    if columns is None:
        return tf.math.top_k(values, tf.minimum(k, tf.shape(values)[-1]))
    return tf.math.top_k(values, min(k, columns))


@dispatched
def largest_log_prob(rows: tf.Tensor, best: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Computes the largest log probability of each row.

    Args:
        rows: Logits, float32 (rows, V).
        best: The largest logits of each row, float32 (rows, k), descending.
        ids: Their columns, int32 (rows, k).

    Returns:
        float32 (rows, 1).
    """
    # On a CPU softmax is one kernel, twice as fast as the three kernels of log-sum-exp;
    # the largest probability is at least 1 / V, so it does not underflow. (`ids[:, :1]`
    # would be simpler, but slicing a result of top_k that is also used whole makes XLA
    # sort whole rows.)
    is_first = tf.equal(tf.range(tf.shape(ids)[1]), 0)
    first = tf.reduce_max(tf.where(is_first, ids, 0), axis=1, keepdims=True)
    return tf.math.log(tf.gather(tf.nn.softmax(rows), first, batch_dims=1))


def only_eos(logits: tf.Tensor, finished: tf.Tensor) -> tf.Tensor:
    """Sets the probability of EOS after finished hypotheses to 1.

    Args:
        logits: float (batch, beam, vocab).
        finished: bool (batch, beam or 1).

    Returns:
        float32 (batch, beam, vocab).
    """
    other = tf.not_equal(tf.range(tf.shape(logits)[2]), EOS_ID)
    forced = tf.where(other, NEVER, 0.0)
    return tf.where(finished[:, :, None], forced, tf.cast(logits, tf.float32))


class Candidates(NamedTuple):
    """Continuations of a sentence's hypotheses, best first.

    Attributes:
        log_probs: float32 (batch, candidates), of the whole hypothesis.
        parents: int32 (batch, candidates), the index of the continued hypothesis.
        ids: int32 (batch, candidates), the added token.
    """

    log_probs: tf.Tensor
    parents: tf.Tensor
    ids: tf.Tensor


def best_candidates(
    logits: tf.Tensor, log_probs: tf.Tensor, count: int, forbidden: tf.Tensor | None
) -> Candidates:
    """Selects the `count` best continuations of each sentence.

    They are chosen from the `count` best continuations of each hypothesis, ranked by
    logit. Ties are broken by the lower hypothesis, then by the lower id.

    # T2T: beam_search.py:grow_topk sorts log probabilities divided by the penalty; all
    hypotheses of a step share it, so that the order is the same up to rounding.

    Args:
        logits: float (batch, beam, vocab).
        log_probs: float32 (batch, beam), of the hypotheses so far.
        count: Number of candidates, at most beam * vocab.
        forbidden: Tokens that are not selected but keep their probability: a few ids,
            int32 (batch, n) with static n; or a mask for many, bool, broadcast to the
            logits' shape (see `best_allowed_candidates`); or None.
    """
    if forbidden is not None and forbidden.dtype == tf.bool:
        return best_allowed_candidates(logits, log_probs, count, forbidden)
    beam, vocab = logits.shape[1], logits.shape[2] or tf.shape(logits)[2]
    # (batch, beam, vocab) -> (batch * beam, vocab)
    rows = tf.cast(tf.reshape(logits, [-1, vocab]), tf.float32)
    best, ids = top_k(rows, count + (0 if forbidden is None else forbidden.shape[1]))
    with tf.control_dependencies([best]):
        # The logits are not read any more, so softmax can overwrite them.
        largest = largest_log_prob(rows, best, ids)
    step_log_probs = best - tf.reduce_max(best, axis=1, keepdims=True) + largest
    if forbidden is not None:
        # (batch, n) -> (batch * beam, 1, n), compared with ids of (batch * beam, k, 1)
        unwanted = tf.repeat(forbidden, beam, axis=0)[:, None]
        never = tf.reduce_any(tf.equal(ids[:, :, None], unwanted), axis=2)
        step_log_probs = tf.where(never, NEVER, step_log_probs)
    return _merge_beams(step_log_probs, ids, log_probs, beam, count)


def best_allowed_candidates(
    logits: tf.Tensor, log_probs: tf.Tensor, count: int, forbidden: tf.Tensor
) -> Candidates:
    """Does what `best_candidates` does, for a mask of forbidden tokens.

    The best allowed token may underflow in softmax, so this uses log-sum-exp.

    Args:
        logits: float (batch, beam, vocab).
        log_probs: float32 (batch, beam), of the hypotheses so far.
        count: Number of candidates, at most beam * vocab. If fewer are allowed, the
            others have log probability -inf.
        forbidden: bool, broadcast to the logits' shape.
    """
    logits = tf.cast(logits, tf.float32)
    beam, vocab = logits.shape[1], logits.shape[2] or tf.shape(logits)[2]
    allowed = tf.where(forbidden, NEVER, logits)
    # (batch, beam, vocab) -> (batch * beam, vocab)
    best, ids = top_k(tf.reshape(allowed, [-1, vocab]), count)
    # (batch, beam) -> (batch * beam, 1)
    normalizer = tf.reshape(tf.reduce_logsumexp(logits, axis=2), [-1, 1])
    return _merge_beams(best - normalizer, ids, log_probs, beam, count)


def _merge_beams(
    step_log_probs: tf.Tensor,
    ids: tf.Tensor,
    log_probs: tf.Tensor,
    beam: int,
    count: int,
) -> Candidates:
    """Selects a sentence's best candidates from the best of each hypothesis.

    `step_log_probs`, of the last token only, and `ids` are (batch * beam, k).
    """
    k = ids.shape[1] or tf.shape(ids)[1]
    # (batch * beam, k) -> (batch, beam, k) -> (batch, beam * k)
    totals = log_probs[:, :, None] + tf.reshape(step_log_probs, [-1, beam, k])
    totals, position = tf.math.top_k(tf.reshape(totals, [-1, beam * k]), count)
    chosen = tf.gather(tf.reshape(ids, [-1, beam * k]), position, batch_dims=1)
    return Candidates(log_probs=totals, parents=position // k, ids=chosen)
