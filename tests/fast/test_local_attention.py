"""Restricted self-attention in windows is the formula that hides what is far."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.local_attention import attend_locally, window_bias, windows_of
from t2t_repro.layers import local_attention
from t2t_repro.layers.attention import MASKED
from t2t_repro.layers.masks import causal_mask, padding_mask

HEADS, D_K, D_V = 3, 4, 5


def projected(length, seed=0):
    """Queries, keys and values of two sentences."""
    generator = np.random.default_rng(seed)
    return [
        tf.constant(generator.normal(size=(2, HEADS, length, depth)), tf.float32)
        for depth in (D_K, D_K, D_V)
    ]


def keep(weights):
    return weights


def masks(length):
    """The masks of this package, sentences that share a row, and none."""
    ids = np.ones((2, length), np.int32)
    ids[1, 3:] = 0
    segments = np.ones((2, length), np.int32)
    segments[0, 3:] = 2
    same = segments[:, :, None] == segments[:, None, :]
    causal = np.array(causal_mask(length))
    return {
        "none": None,
        "padding": np.array(padding_mask(ids))[:, None],
        "causal": causal[:, None],
        "packed": (same & causal)[:, None],
    }


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 4, 5, 11, 12])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "packed"])
def test_windows_give_what_the_formula_gives(radius, length, kind):
    mask = masks(length)[kind]
    given = (*projected(length, seed=length), mask, radius, keep)
    expected = local_attention.attend_locally.reference(*given).numpy()
    found = attend_locally(*given).numpy()
    # Where a query sees nothing at all, its output has no meaning.
    place = np.arange(length)
    seen = np.abs(place[:, None] - place) <= radius
    seen = seen[None, None] if mask is None else seen & mask
    some = np.broadcast_to(seen, (2, HEADS, length, length)).any(axis=-1)
    assert some.any()
    np.testing.assert_allclose(found[some], expected[some], atol=2e-6)


def test_a_graph_that_knows_no_sizes_gives_the_same():
    given = projected(9, seed=1)
    for kind, mask in masks(9).items():
        if mask is None:
            continue
        any_size = [None, 1, None if kind in ("causal", "packed") else 1, None]

        @tf.function(
            input_signature=[
                *(tf.TensorSpec([None, HEADS, None, d]) for d in (D_K, D_K, D_V)),
                tf.TensorSpec(any_size, tf.bool),
            ],
            autograph=False,
        )
        def restricted(query, key, value, mask):
            return attend_locally(query, key, value, mask, 2, keep)

        np.testing.assert_allclose(
            restricted(*given, mask), attend_locally(*given, mask, 2, keep), atol=1e-6
        )


def test_what_is_beyond_the_ends_is_hidden():
    """Radius 1 and four positions: blocks of 3 queries, windows of 5 keys."""
    bias = np.array(window_bias(None, windows_of(4, 1)))[0, 0]
    seen = (bias == 0).astype(int).tolist()
    assert seen == [
        # Keys -1 0 1 2 3 for the queries 0, 1, 2.
        [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]],
        # Keys 2 3 4 5 6 for the query 3, and two that only fill the block.
        [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]],
    ]
    assert bias.max() == 0
    assert bias[bias < 0].max() <= MASKED


def test_the_weights_that_are_dropped_have_the_shape_of_windows():
    shapes = []

    def drop(weights):
        shapes.append(tuple(weights.shape))
        return 2 * weights

    given = (*projected(9), None, 2)
    # Nine queries in two blocks of five, each of which may see nine keys.
    np.testing.assert_allclose(
        attend_locally(*given, drop), 2 * attend_locally(*given, keep), rtol=1e-6
    )
    assert shapes == [(2, HEADS, 2, 5, 9)]


def test_gradients_reach_the_neighbourhood_alone():
    query, key, value = projected(9, seed=2)
    with tf.GradientTape() as tape:
        tape.watch([key, value])
        heads = attend_locally(query, key, value, None, 2, keep)
        middle = tf.reduce_sum(heads[:, :, 4] ** 2)
    for gradient in tape.gradient(middle, [key, value]):
        reached = np.abs(gradient).max(axis=(0, 1, 3)) > 0
        assert reached.tolist() == [abs(place - 4) <= 2 for place in range(9)]
