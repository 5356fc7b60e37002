"""Masks are exact: true where a position is seen, false where it is not."""

import numpy as np

from t2t_repro.layers.masks import causal_mask, non_padding, padding_mask


def test_padding_is_hidden_and_every_symbol_seen():
    ids = np.array([[7, 1, 0], [5, 6, 1]])
    mask = np.array(padding_mask(ids))
    np.testing.assert_array_equal(mask, [[[True, True, False]], [[True, True, True]]])
    assert mask.dtype == bool


def test_padding_inside_a_sentence_is_hidden_too():
    np.testing.assert_array_equal(
        padding_mask(np.array([[0, 4, 0]])), [[[False, True, False]]]
    )


def test_later_positions_are_hidden():
    mask = np.array(causal_mask(3))
    np.testing.assert_array_equal(mask, [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]])
    assert mask.dtype == bool


def test_symbols_are_marked():
    mask = np.array(non_padding(np.array([[3, 0]])))
    np.testing.assert_array_equal(mask, [[True, False]])
    assert mask.dtype == bool


def test_the_end_is_seen_only_where_it_is_asked_for_or_all_there_is():
    seen = padding_mask(np.array([[5, 6, 1, 0], [1, 0, 0, 0]]), with_end=False)
    # The words of the first; the second is an empty sentence.
    expected = [[[True, True, False, False]], [[True, False, False, False]]]
    np.testing.assert_array_equal(seen, expected)
