"""Gathering of encoded pairs; expected values written by hand."""

import numpy as np
import pytest

from t2t_repro.data.encoded_pairs import EncodedPairs

SOURCES = [[5, 6, 1], [7, 1], [8, 9, 10, 1]]
TARGETS = [[15, 1], [16, 17, 18, 1], [19, 1]]


def test_pairs_are_padded_in_the_order_of_the_indices():
    pairs = EncodedPairs.from_lists(SOURCES, TARGETS)
    batch = pairs.gather(np.array([2, 0]))
    assert batch["inputs"].tolist() == [[8, 9, 10, 1], [5, 6, 1, 0]]
    assert batch["targets"].tolist() == [[19, 1], [15, 1]]
    assert batch["inputs"].dtype == batch["targets"].dtype == np.int32


def test_static_shape_adds_columns_and_filler_rows():
    pairs = EncodedPairs.from_lists(SOURCES, TARGETS)
    batch = pairs.gather(np.array([1]), shape=(2, 3, 5))
    assert batch["inputs"].tolist() == [[7, 1, 0], [0, 0, 0]]
    assert batch["targets"].tolist() == [[16, 17, 18, 1, 0], [0, 0, 0, 0, 0]]


def test_shards_form_one_sequence_of_pairs():
    first = (np.array([5, 6, 1, 15, 1], np.uint16), np.array([[3, 2]], np.int32))
    second = (
        np.array([7, 1, 16, 17, 18, 1, 8, 9, 10, 1, 19, 1], np.uint16),
        np.array([[2, 4], [4, 2]], np.int32),
    )
    pairs = EncodedPairs(*zip(first, second, strict=True))
    whole = EncodedPairs.from_lists(SOURCES, TARGETS)
    assert len(pairs) == 3
    for indices in ([0, 1, 2], [2, 0], [1], [2, 2, 0]):
        one, two = pairs.gather(np.array(indices)), whole.gather(np.array(indices))
        np.testing.assert_array_equal(one["inputs"], two["inputs"])
        np.testing.assert_array_equal(one["targets"], two["targets"])


def test_gathering_equals_a_loop_over_the_pairs():
    rng = np.random.default_rng(1)
    sources = [rng.integers(2, 50, rng.integers(1, 9)).tolist() for _ in range(40)]
    targets = [rng.integers(2, 50, rng.integers(1, 9)).tolist() for _ in range(40)]
    pairs = EncodedPairs.from_lists(sources, targets)
    order = rng.permutation(40)
    batch = pairs.gather(order)
    for row, pair in enumerate(order):
        for name, side in (("inputs", sources[pair]), ("targets", targets[pair])):
            width = batch[name].shape[1]
            assert batch[name][row].tolist() == side + [0] * (width - len(side))


def test_rejects_lengths_that_do_not_add_up():
    with pytest.raises(ValueError, match="shard 0"):
        EncodedPairs([np.array([5, 1, 6], np.uint16)], [np.array([[2, 2]], np.int32)])
