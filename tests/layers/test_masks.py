"""Masks are exact: 0 where a position is seen, -1e9 where it is not."""

import numpy as np

from t2t_repro.layers.masks import (
    causal_bias,
    neighbourhood_bias,
    non_padding,
    padding_bias,
)


def test_padding_is_hidden_and_every_symbol_seen():
    ids = np.array([[7, 1, 0], [5, 6, 1]])
    bias = np.array(padding_bias(ids))
    np.testing.assert_array_equal(bias, [[[[0, 0, -1e9]]], [[[0, 0, 0]]]])
    assert bias.dtype == "float32"


def test_padding_inside_a_sentence_is_hidden_too():
    np.testing.assert_array_equal(padding_bias(np.array([[0, 4, 0]]))[0, 0, 0, 0], -1e9)


def test_later_positions_are_hidden():
    low = -1e9
    np.testing.assert_array_equal(
        causal_bias(3), [[[[0, low, low], [0, 0, low], [0, 0, 0]]]]
    )


def test_far_positions_are_hidden():
    low = -1e9
    np.testing.assert_array_equal(
        neighbourhood_bias(4, 1)[0, 0],
        [[0, 0, low, low], [0, 0, 0, low], [low, 0, 0, 0], [low, low, 0, 0]],
    )


def test_symbols_are_marked_in_the_dtype_asked_for():
    mask = non_padding(np.array([[3, 0]]), "float16")
    np.testing.assert_array_equal(mask, [[1, 0]])
    assert mask.dtype.name == "float16"
