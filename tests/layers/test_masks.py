"""Masks are true exactly at visible positions."""

import numpy as np

from t2t_repro.layers.masks import causal_mask, non_padding, padding_mask


def test_padding_mask_hides_only_padding():
    ids = np.array([[7, 1, 0], [5, 6, 1]])
    mask = np.array(padding_mask(ids))
    np.testing.assert_array_equal(mask, [[[True, True, False]], [[True, True, True]]])
    assert mask.dtype == bool


def test_padding_inside_a_sentence_is_hidden():
    np.testing.assert_array_equal(
        padding_mask(np.array([[0, 4, 0]])), [[[False, True, False]]]
    )


def test_later_positions_are_hidden():
    mask = np.array(causal_mask(3))
    np.testing.assert_array_equal(mask, [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]])
    assert mask.dtype == bool


def test_non_padding_marks_tokens():
    mask = np.array(non_padding(np.array([[3, 0]])))
    np.testing.assert_array_equal(mask, [[True, False]])
    assert mask.dtype == bool


def test_eos_can_be_hidden_except_in_an_empty_sentence():
    mask = padding_mask(np.array([[5, 6, 1, 0], [1, 0, 0, 0]]), with_end=False)
    # The second sentence is empty.
    expected = [[[True, True, False, False]], [[True, False, False, False]]]
    np.testing.assert_array_equal(mask, expected)
