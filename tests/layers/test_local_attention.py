"""Restricted self-attention is full attention behind a mask."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.local_attention import (
    LocalAttention,
    distances_between,
    near,
)
from t2t_repro.layers.masks import causal_mask, padding_mask
from t2t_repro.layers.seeded_dropout import dropout_seed

D_MODEL = 12


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.fixture(scope="module")
def layers():
    """A layer that sees everything, and restricted ones with its weights."""
    found = {0: MultiHeadAttention(3, 4, 5)}
    shape = (None, None, D_MODEL)
    found[0].build(shape, shape)
    for radius in (1, 2, 5):
        found[radius] = LocalAttention(3, 4, 5, radius=radius)
        found[radius].build(shape, shape)
        found[radius].set_weights(found[0].get_weights())
    return found


def masks(length):
    """The masks of this package, sentences that share a row, and none."""
    ids = np.ones((2, length), np.int32)
    ids[1, 3:] = 0
    segments = np.ones((2, length), np.int32)
    segments[0, 3:] = 2
    same = segments[:, :, None] == segments[:, None, :]
    return {
        "none": None,
        "padding": np.array(padding_mask(ids)),
        "causal": np.array(causal_mask(length)),
        "packed": same & np.array(causal_mask(length)),
    }


def test_distances_are_the_keys_place_less_the_querys():
    three = np.zeros((1, 1, 3, 2))
    np.testing.assert_array_equal(
        distances_between(three, three), [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    )


def test_queries_are_the_last_of_the_keys():
    two, five = np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 5, 2))
    np.testing.assert_array_equal(
        distances_between(two, five), [[-3, -2, -1, 0, 1], [-4, -3, -2, -1, 0]]
    )


def test_far_positions_are_hidden():
    four = np.zeros((1, 1, 4, 2))
    np.testing.assert_array_equal(
        near(None, distances_between(four, four), 1),
        [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]],
    )


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 4, 5, 11, 12])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "packed"])
def test_a_radius_gives_what_a_mask_gives(layers, radius, length, kind):
    x, mask = random(2, length, D_MODEL, seed=length), masks(length)[kind]
    place = np.arange(length)
    within = np.abs(place[:, None] - place) <= radius
    seen = within[None] if mask is None else within & mask
    given = {"return_attention_scores": True}
    expected, scores = layers[0](x, x, attention_mask=seen, **given)
    found, found_scores = layers[radius](x, x, attention_mask=mask, **given)
    # Where a query sees nothing at all, its output has no meaning.
    some = np.broadcast_to(seen, (2, length, length)).any(axis=-1)
    assert some.any()
    np.testing.assert_allclose(found[some], expected[some], atol=2e-6)
    scores, found_scores = (
        np.moveaxis(np.array(each), 1, 2)[some] for each in (scores, found_scores)
    )
    np.testing.assert_allclose(found_scores, scores, atol=1e-6)


def test_a_graph_that_knows_no_sizes_gives_the_same(layers):
    x = random(2, 9, D_MODEL, seed=1)
    for kind, mask in masks(9).items():
        if mask is None:
            continue
        any_size = [None, None if kind == "packed" else 1, None]
        if kind in ("causal", "packed"):
            any_size = [None, None, None]

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None, D_MODEL]),
                tf.TensorSpec(any_size, tf.bool),
            ],
            autograph=False,
        )
        def restricted(x, mask):
            return layers[2](x, x, attention_mask=mask)

        np.testing.assert_allclose(
            restricted(x, mask), layers[2](x, x, attention_mask=mask), atol=1e-6
        )


def test_weights_are_dropped_in_training_alone():
    layer = LocalAttention(2, 4, 4, radius=1, dropout=0.5)
    x = random(1, 4, D_MODEL)
    plain = np.array(layer(x, x))
    with dropout_seed(tf.constant([1, 2])):
        np.testing.assert_array_equal(layer(x, x, training=False), plain)
        dropped = layer(x, x, training=True)
    assert np.abs(np.array(dropped) - plain).max() > 1e-3


def test_a_step_of_a_search_is_a_row_of_the_whole(layers):
    layer = layers[2]
    x = random(2, 7, D_MODEL)
    whole = layer(x, x, use_causal_mask=True)
    keys, values = layer.project_memory(x)
    query = layer.project_query(x[:, 6:])
    where = {"distances": distances_between(query, keys)}
    step = layer.attend(query, keys, values, None, **where)
    np.testing.assert_allclose(step[:, 0], whole[:, 6], atol=1e-6)


def test_gradients_reach_the_neighbourhood_alone(layers):
    x = tf.constant(random(1, 9, D_MODEL, seed=2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        middle = tf.reduce_sum(layers[2](x, x)[0, 4] ** 2)
    reached = np.abs(tape.gradient(middle, x)[0]).max(axis=-1) > 0
    assert reached.tolist() == [abs(place - 4) <= 2 for place in range(9)]
