"""The best candidates equal those of a sort of the whole table."""

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.candidates import best_allowed_candidates, best_candidates

DRAW = np.random.default_rng(7)
LOGITS = DRAW.normal(size=(3, 4, 2000)).astype("float32") * 3
LOG_PROBS = -DRAW.random(size=(3, 4)).astype("float32") * 4


def expected(allowed: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the best 8 of the whole (beam * vocab) table, sorted in float64."""
    logits = LOGITS.astype("float64")
    table = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    table = (table + LOG_PROBS[:, :, None])[:, :, allowed]
    flat = table.reshape(3, -1)
    best = np.argsort(-flat, axis=1, kind="stable")[:, :8]
    parents, ids = np.divmod(best, table.shape[2])
    return np.take_along_axis(flat, best, 1), parents, ids + (allowed.start or 0)


def test_best_candidates_equal_a_sort_of_the_table() -> None:
    result = best_candidates(tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, None)
    log_probs, parents, ids = expected(slice(None))
    np.testing.assert_allclose(result.log_probs, log_probs, atol=1e-5)
    np.testing.assert_array_equal(result.parents, parents)
    np.testing.assert_array_equal(result.ids, ids)


def test_forbidden_token_is_excluded_but_keeps_its_probability() -> None:
    logits = LOGITS.copy()
    logits[:, :, 0] = LOGITS[:, :, 1:].max(axis=2) + 1
    never = tf.zeros([3, 1], tf.int32)
    result = best_candidates(tf.constant(logits), tf.constant(LOG_PROBS), 8, never)
    assert 0 not in result.ids.numpy()
    rows = logits.astype("float64")[0, result.parents[0, 0]]
    total = LOG_PROBS[0, result.parents[0, 0]] + rows[result.ids[0, 0]]
    np.testing.assert_allclose(
        result.log_probs[0, 0], total - np.log(np.exp(rows).sum()), atol=1e-5
    )


def test_each_sentence_has_its_own_forbidden_tokens() -> None:
    free = best_candidates(tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, None)
    first = free.ids.numpy()[:, :2]
    never = first.copy()
    never[1] = first[1, 0]  # Forbids the same token twice.
    result = best_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(never)
    )
    forbidden = np.zeros(LOGITS.shape, bool)
    for row, tokens in enumerate(never):
        forbidden[row, :, tokens] = True
    expected = best_allowed_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(forbidden)
    )
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_array_equal(result.parents, expected.parents)
    np.testing.assert_allclose(result.log_probs, expected.log_probs, atol=1e-5)


def test_masked_tokens_are_excluded_but_keep_their_probability() -> None:
    forbidden = np.random.default_rng(8).random(LOGITS.shape) < 0.9
    result = best_allowed_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(forbidden)
    )
    logits = LOGITS.astype("float64")
    table = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    flat = np.where(forbidden, -np.inf, table + LOG_PROBS[:, :, None]).reshape(3, -1)
    best = np.argsort(-flat, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(result.parents * 2000 + result.ids, best)
    np.testing.assert_allclose(
        result.log_probs, np.take_along_axis(flat, best, 1), atol=1e-5
    )


def test_ties_are_broken_by_hypothesis_then_by_id() -> None:
    result = best_candidates(tf.zeros([1, 2, 3]), tf.zeros([1, 2]), 4, None)
    np.testing.assert_array_equal(result.parents, [[0, 0, 0, 1]])
    np.testing.assert_array_equal(result.ids, [[0, 1, 2, 0]])


def test_large_logits_do_not_overflow() -> None:
    result = best_candidates(tf.constant([[[1e4, 0.0]]]), tf.zeros([1, 1]), 1, None)
    np.testing.assert_allclose(result.log_probs, [[0.0]], atol=1e-6)


def test_bfloat16_logits_are_normalized_in_float32() -> None:
    logits = tf.cast(tf.constant([[[0.5] * 1000]]), tf.bfloat16)
    result = best_candidates(logits, tf.zeros([1, 1]), 1, None)
    np.testing.assert_allclose(result.log_probs, [[-np.log(1000)]], rtol=1e-5)
