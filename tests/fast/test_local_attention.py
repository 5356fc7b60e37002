"""Local attention in windows equals the reference implementation."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.local_attention import attend_locally, compute_windows, window_bias
from t2t_repro.layers import local_attention
from t2t_repro.layers.attention import MASKED
from tests.layers.test_local_attention import masks

HEADS, D_K, D_V = 3, 4, 5


def projected(length, seed=0):
    """Returns random queries, keys and values of two sentences."""
    generator = np.random.default_rng(seed)
    return [
        tf.constant(generator.normal(size=(2, HEADS, length, depth)), tf.float32)
        for depth in (D_K, D_K, D_V)
    ]


def no_dropout(weights):
    return weights


def with_heads(mask):
    """Adds the axis of heads to a mask."""
    return None if mask is None else mask[:, None]


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 4, 5, 11, 12])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "packed"])
def test_windows_equal_the_reference(radius, length, kind):
    mask = with_heads(masks(length)[kind])
    arguments = (*projected(length, seed=length), mask, radius, no_dropout)
    expected = local_attention.attend_locally.reference(*arguments).numpy()
    result = attend_locally(*arguments).numpy()
    # The output of a query is arbitrary if all its keys are masked.
    position = np.arange(length)
    visible = np.abs(position[:, None] - position) <= radius
    visible = visible[None, None] if mask is None else visible & mask
    has_keys = np.broadcast_to(visible, (2, HEADS, length, length)).any(axis=-1)
    assert has_keys.any()
    np.testing.assert_allclose(result[has_keys], expected[has_keys], atol=2e-6)


def test_unknown_sizes_give_the_same_result():
    arguments = projected(9, seed=1)
    for kind, mask in masks(9).items():
        if mask is None:
            continue
        mask = with_heads(mask)
        any_size = [None, 1, None if kind in ("causal", "packed") else 1, None]

        @tf.function(
            input_signature=[
                *(tf.TensorSpec([None, HEADS, None, d]) for d in (D_K, D_K, D_V)),
                tf.TensorSpec(any_size, tf.bool),
            ],
            autograph=False,
        )
        def restricted(query, key, value, mask):
            return attend_locally(query, key, value, mask, 2, no_dropout)

        np.testing.assert_allclose(
            restricted(*arguments, mask),
            attend_locally(*arguments, mask, 2, no_dropout),
            atol=1e-6,
        )


def test_masks_positions_outside_of_the_sequence():
    """Uses radius 1 and four positions: blocks of 3 queries, windows of 5 keys."""
    bias = np.array(window_bias(None, compute_windows(4, 1)))[0, 0]
    visible = (bias == 0).astype(int).tolist()
    assert visible == [
        # Keys -1, 0, 1, 2, 3 of queries 0, 1, 2.
        [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]],
        # Keys 2, 3, 4, 5, 6 of query 3 and of two padding queries.
        [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]],
    ]
    assert bias.max() == 0
    assert bias[bias < 0].max() <= MASKED


def test_applies_dropout_to_the_window_weights():
    shapes = []

    def drop(weights):
        shapes.append(tuple(weights.shape))
        return 2 * weights

    arguments = (*projected(9), None, 2)
    # Nine queries form two blocks of five, with windows of nine keys.
    np.testing.assert_allclose(
        attend_locally(*arguments, drop),
        2 * attend_locally(*arguments, no_dropout),
        rtol=1e-6,
    )
    assert shapes == [(2, HEADS, 2, 5, 9)]


def test_gradients_reach_only_keys_within_the_radius():
    query, key, value = projected(9, seed=2)
    with tf.GradientTape() as tape:
        tape.watch([key, value])
        heads = attend_locally(query, key, value, None, 2, no_dropout)
        middle = tf.reduce_sum(heads[:, :, 4] ** 2)
    for gradient in tape.gradient(middle, [key, value]):
        reached = np.abs(gradient).max(axis=(0, 1, 3)) > 0
        assert reached.tolist() == [abs(position - 4) <= 2 for position in range(9)]
