"""Draws follow the distributions, and each sentence has its own random numbers."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import Sampling
from t2t_repro.decoding.multinomial import draw, sentence_uniforms

LOGITS = np.array([-np.inf, 0.3, 2.1, -1.2, 1.4, -np.inf, 0.9, -0.4, -np.inf])
# Evenly spaced numbers, which draw each token in proportion to its probability.
POINTS = 10_000
GRID = ((np.arange(POINTS) + 0.5) / POINTS).astype("float32")


def distribution(
    temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> np.ndarray:
    """Computes the probabilities of all tokens from the definitions."""
    weights = np.exp(LOGITS / temperature)
    best_first = list(np.argsort(-LOGITS, kind="stable"))
    head = best_first[: top_k or None]
    share = weights[head] / weights[head].sum()
    # The fewest tokens whose probabilities sum to at least p.
    nucleus = next(n for n in range(1, 99) if share[:n].sum() >= top_p - 1e-9)
    truncated = np.zeros_like(weights)
    truncated[head[:nucleus]] = weights[head[:nucleus]]
    return truncated / truncated.sum()


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.8), (4, 0.7), (0, 0.01), (50, 1.0)]
)
def test_tokens_are_drawn_in_proportion_to_their_probabilities(
    temperature: float, top_k: int, top_p: float
) -> None:
    expected = distribution(temperature, top_k, top_p)
    logits = tf.broadcast_to(tf.constant(LOGITS, tf.float32), [POINTS, 9])
    ids = draw(
        logits,
        tf.constant(GRID),
        Sampling(temperature, top_k, top_p),
    )
    counts = np.bincount(ids, minlength=9)
    # Tokens of probability 0 are never drawn. Rounding changes the counts of other
    # tokens by at most one.
    np.testing.assert_array_equal(counts[expected == 0], 0)
    np.testing.assert_allclose(counts, expected * POINTS, atol=1.01)


def test_extreme_numbers_draw_possible_tokens() -> None:
    logits = tf.constant([LOGITS, LOGITS], tf.float32)
    ids = draw(logits, tf.constant([0.0, 1 - 2.0**-23]), Sampling())
    np.testing.assert_array_equal(ids, [1, 7])


def test_top_k_breaks_ties_by_the_lower_id() -> None:
    ids = draw(tf.zeros([POINTS, 5]), tf.constant(GRID), Sampling(top_k=2))
    np.testing.assert_array_equal(np.bincount(ids), [5000, 5000])


def test_draws_from_a_large_vocabulary() -> None:
    # With 6000 columns, top-k is computed in chunks.
    logits = np.random.default_rng(4).normal(size=6000).astype("float32")
    best = np.argsort(-logits)[:40]
    ids = draw(
        tf.broadcast_to(logits, [POINTS, 6000]), tf.constant(GRID), Sampling(top_k=40)
    ).numpy()
    assert set(ids.tolist()) == set(best.tolist())
    weights = np.exp(logits[best].astype("float64"))
    counts = np.bincount(ids, minlength=6000)[best]
    np.testing.assert_allclose(counts, POINTS * weights / weights.sum(), atol=1.01)


def test_random_numbers_do_not_depend_on_the_batch() -> None:
    keys = np.array([7, -3, 7, 2**31 - 1, 0], "int32")
    limits = np.array([4, 9, 4, 2, 0], "int32")
    together = sentence_uniforms([1, 2], keys, limits, 3).numpy()
    assert together.shape == (5, 3, 9)
    np.testing.assert_array_equal(together[0], together[2])
    for row in range(5):
        alone = sentence_uniforms([1, 2], keys[row : row + 1], limits[row : row + 1], 3)
        assert alone.shape == (1, 3, limits[row])
        np.testing.assert_array_equal(alone[0], together[row, :, : limits[row]])
        assert not np.any(together[row, :, limits[row] :])


def test_empty_batch_has_empty_random_numbers() -> None:
    empty = tf.zeros([0], tf.int32)
    numbers = sentence_uniforms([1, 2], empty, empty, 3)
    assert numbers.shape == (0, 3, 0)


# Compares neighbors along each axis: sentence, sample, step and seed.
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_random_numbers_are_uniform_and_independent(axis: int) -> None:
    keys, limits = tf.range(40), tf.fill([40], 10)
    numbers = np.stack(
        [sentence_uniforms([1, seed], keys, limits, 10) for seed in range(4)], axis=-1
    )
    assert numbers.min() >= 0
    assert numbers.max() < 1
    length = numbers.shape[axis] // 2 * 2
    first = np.take(numbers, range(0, length, 2), axis)
    second = np.take(numbers, range(1, length, 2), axis)
    cells, _, _ = np.histogram2d(first.ravel(), second.ravel(), [4, 4], [[0, 1]] * 2)
    expected = first.size / 16
    # 99.9 % of the chi-square distribution with 15 degrees of freedom.
    assert np.sum((cells - expected) ** 2 / expected) < 37.70
