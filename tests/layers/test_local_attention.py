"""Local self-attention equals full attention with a mask."""

import numpy as np
import pytest

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.local_attention import (
    LocalAttention,
    compute_distances,
    mask_distant_keys,
)
from t2t_repro.layers.masks import causal_mask, padding_mask
from tests.arrays import random

D_MODEL = 12


@pytest.fixture(scope="module")
def layers():
    """A full attention layer and local ones with its weights, by radius; 0: full."""
    layers = {0: MultiHeadAttention(3, 4, 5)}
    shape = (None, None, D_MODEL)
    layers[0].build(shape, shape)
    for radius in (1, 2, 5):
        layers[radius] = LocalAttention(3, 4, 5, radius=radius)
        layers[radius].build(shape, shape)
        layers[radius].set_weights(layers[0].get_weights())
    return layers


def masks(length):
    """Masks by name: padding, causal, packed sentences, and none."""
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


def test_distances_are_key_positions_minus_query_positions():
    three = np.zeros((1, 1, 3, 2))
    np.testing.assert_array_equal(
        compute_distances(three, three), [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    )


def test_queries_are_the_last_positions_of_the_keys():
    two, five = np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 5, 2))
    np.testing.assert_array_equal(
        compute_distances(two, five), [[-3, -2, -1, 0, 1], [-4, -3, -2, -1, 0]]
    )


def test_positions_beyond_the_radius_are_hidden():
    four = np.zeros((1, 1, 4, 2))
    np.testing.assert_array_equal(
        mask_distant_keys(None, compute_distances(four, four), 1),
        [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]],
    )


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 4, 5, 11, 12])
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "packed"])
def test_a_radius_equals_a_mask(layers, radius, length, kind):
    x, mask = random(2, length, D_MODEL, seed=length), masks(length)[kind]
    place = np.arange(length)
    within = np.abs(place[:, None] - place) <= radius
    visible = within[None] if mask is None else within & mask
    options = {"return_attention_scores": True}
    expected, scores = layers[0](x, x, attention_mask=visible, **options)
    output, output_scores = layers[radius](x, x, attention_mask=mask, **options)
    # The output of a fully masked query is undefined.
    defined = np.broadcast_to(visible, (2, length, length)).any(axis=-1)
    assert defined.any()
    np.testing.assert_allclose(output[defined], expected[defined], atol=2e-6)
    scores, output_scores = (
        np.moveaxis(np.array(each), 1, 2)[defined] for each in (scores, output_scores)
    )
    np.testing.assert_allclose(output_scores, scores, atol=1e-6)


def test_a_decoding_step_equals_a_row_of_the_whole_sequence(layers):
    layer = layers[2]
    x = random(2, 7, D_MODEL)
    whole = layer(x, x, use_causal_mask=True)
    keys, values = layer.project_memory(x)
    query = layer.project_query(x[:, 6:])
    where = {"distances": compute_distances(query, keys)}
    step = layer.attend(query, keys, values, None, **where)
    np.testing.assert_allclose(step[:, 0], whole[:, 6], atol=1e-6)
