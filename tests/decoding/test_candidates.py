"""The best continuations against a sort of the whole table."""

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.candidates import best_allowed_candidates, best_candidates

DRAW = np.random.default_rng(7)
LOGITS = DRAW.normal(size=(3, 4, 2000)).astype("float32") * 3
LOG_PROBS = -DRAW.random(size=(3, 4)).astype("float32") * 4


def expected(allowed: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts the whole (beam * vocab) table in float64."""
    logits = LOGITS.astype("float64")
    table = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    table = (table + LOG_PROBS[:, :, None])[:, :, allowed]
    flat = table.reshape(3, -1)
    best = np.argsort(-flat, axis=1, kind="stable")[:, :8]
    parents, ids = np.divmod(best, table.shape[2])
    return np.take_along_axis(flat, best, 1), parents, ids + (allowed.start or 0)


def test_equal_the_best_of_the_whole_table() -> None:
    found = best_candidates(tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, None)
    log_probs, parents, ids = expected(slice(None))
    np.testing.assert_allclose(found.log_probs, log_probs, atol=1e-5)
    np.testing.assert_array_equal(found.parents, parents)
    np.testing.assert_array_equal(found.ids, ids)


def test_the_forbidden_symbol_is_left_out_but_keeps_its_probability() -> None:
    logits = LOGITS.copy()
    logits[:, :, 0] = LOGITS[:, :, 1:].max(axis=2) + 1
    never = tf.zeros([3, 1], tf.int32)
    found = best_candidates(tf.constant(logits), tf.constant(LOG_PROBS), 8, never)
    assert 0 not in found.ids.numpy()
    rows = logits.astype("float64")[0, found.parents[0, 0]]
    total = LOG_PROBS[0, found.parents[0, 0]] + rows[found.ids[0, 0]]
    np.testing.assert_allclose(
        found.log_probs[0, 0], total - np.log(np.exp(rows).sum()), atol=1e-5
    )


def test_each_sentence_has_its_own_forbidden_symbols() -> None:
    free = best_candidates(tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, None)
    first = free.ids.numpy()[:, :2]
    never = first.copy()
    never[1] = first[1, 0]  # One symbol, named twice.
    found = best_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(never)
    )
    forbidden = np.zeros(LOGITS.shape, bool)
    for row, symbols in enumerate(never):
        forbidden[row, :, symbols] = True
    expected = best_allowed_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(forbidden)
    )
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.parents, expected.parents)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)


def test_all_forbidden_symbols_are_left_out_but_keep_their_probability() -> None:
    forbidden = np.random.default_rng(8).random(LOGITS.shape) < 0.9
    found = best_allowed_candidates(
        tf.constant(LOGITS), tf.constant(LOG_PROBS), 8, tf.constant(forbidden)
    )
    logits = LOGITS.astype("float64")
    table = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    flat = np.where(forbidden, -np.inf, table + LOG_PROBS[:, :, None]).reshape(3, -1)
    best = np.argsort(-flat, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(found.parents * 2000 + found.ids, best)
    np.testing.assert_allclose(
        found.log_probs, np.take_along_axis(flat, best, 1), atol=1e-5
    )


def test_of_equals_the_lower_hypothesis_then_the_lower_symbol_comes_first() -> None:
    found = best_candidates(tf.zeros([1, 2, 3]), tf.zeros([1, 2]), 4, None)
    np.testing.assert_array_equal(found.parents, [[0, 0, 0, 1]])
    np.testing.assert_array_equal(found.ids, [[0, 1, 2, 0]])


def test_large_logits_do_not_overflow() -> None:
    found = best_candidates(tf.constant([[[1e4, 0.0]]]), tf.zeros([1, 1]), 1, None)
    np.testing.assert_allclose(found.log_probs, [[0.0]], atol=1e-6)


def test_bfloat16_logits_are_normalised_in_float32() -> None:
    logits = tf.cast(tf.constant([[[0.5] * 1000]]), tf.bfloat16)
    found = best_candidates(logits, tf.zeros([1, 1]), 1, None)
    np.testing.assert_allclose(found.log_probs, [[-np.log(1000)]], rtol=1e-5)
