"""Restricted self-attention in windows is full attention behind a mask."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.masks import (
    MASKED,
    causal_bias,
    neighbourhood_bias,
    padding_bias,
    segment_bias,
)
from t2t_repro.layers.neighbourhood import window_bias, windows_of
from t2t_repro.layers.rows import rows_of, sentences_of

D_MODEL = 12


@pytest.fixture(scope="module")
def layers():
    """A layer that sees everything, and restricted ones with its weights."""
    found = {}
    for radius in (0, 1, 2, 5):
        found[radius] = MultiHeadAttention(3, D_MODEL, 4, 5, radius=radius)
        found[radius].build()
        weights = [variable.numpy() for variable in found[0].trainable_variables]
        found[radius].set_weights(weights)
    return found


def attended(layer, x, bias=None):
    """Attends within sentences, (batch, length, d_model)."""
    rows, shape = rows_of(x), tuple(tf.unstack(tf.shape(x)[:2]))
    found = layer(rows, rows, bias, shape=shape, memory_shape=shape)
    return sentences_of(found, shape)


def biases(length):
    """The biases of this package, and none."""
    ids = np.ones((2, length), np.int32)
    ids[1, 3:] = 0
    segments = np.ones((2, length), np.int32)
    segments[0, 3:] = 2
    return {
        "none": None,
        "padding": padding_bias(ids),
        "causal": causal_bias(length),
        "packed": segment_bias(segments, segments) + causal_bias(length),
    }


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 4, 5, 11, 12])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "packed"])
def test_windows_give_what_a_mask_gives(layers, radius, length, kind):
    generator = np.random.default_rng(length)
    x = generator.normal(size=(2, length, D_MODEL)).astype("float32")
    bias = biases(length)[kind]
    beyond = neighbourhood_bias(length, radius)
    masked = beyond if bias is None else bias + beyond
    expected = attended(layers[0], x, masked).numpy()
    found = attended(layers[radius], x, bias).numpy()
    # Where a query sees nothing at all, its output has no meaning.
    seen = (np.broadcast_to(masked, (2, 1, length, length))[:, 0] == 0).any(axis=-1)
    assert seen.any()
    np.testing.assert_allclose(found[seen], expected[seen], atol=1e-5)


def test_a_graph_that_knows_no_sizes_gives_the_same(layers):
    x = np.random.default_rng(1).normal(size=(2, 9, D_MODEL)).astype("float32")
    for kind, bias in biases(9).items():
        if bias is None:
            continue
        any_size = tf.TensorSpec([None, None, None if kind == "packed" else 1, None])
        if kind in ("causal", "packed"):
            any_size = tf.TensorSpec([None, 1, None, None])

        @tf.function(
            input_signature=[tf.TensorSpec([None, None, D_MODEL]), any_size],
            autograph=False,
        )
        def restricted(x, bias):
            return attended(layers[2], x, bias)

        np.testing.assert_allclose(
            restricted(x, bias), attended(layers[2], x, bias), atol=1e-6
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


def test_gradients_reach_the_neighbourhood_alone(layers):
    x = tf.constant(np.random.default_rng(2).normal(size=(1, 9, D_MODEL)), "float32")
    with tf.GradientTape() as tape:
        tape.watch(x)
        middle = tf.reduce_sum(attended(layers[2], x)[0, 4] ** 2)
    reached = np.abs(tape.gradient(middle, x)[0]).max(axis=-1) > 0
    assert reached.tolist() == [abs(place - 4) <= 2 for place in range(9)]
