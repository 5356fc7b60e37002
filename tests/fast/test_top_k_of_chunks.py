"""Chunked top-k equals a stable sort."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.top_k_of_chunks import CHUNK_WIDTHS, chunk_width, top_k


# Below the threshold of chunking, at it, and above it; 6007 is prime.
@pytest.mark.parametrize("columns", [5, 1000, 1024, 6000, 6007])
@pytest.mark.parametrize("digits", [0, 6])
def test_equals_a_stable_sort_with_ties(columns: int, digits: int) -> None:
    values = np.random.default_rng(columns).normal(size=(7, columns)).round(digits)
    values = values.astype("float32")
    largest, indices = top_k(tf.constant(values), 9)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(largest, np.take_along_axis(values, expected, 1))


def test_never_selects_the_padding() -> None:
    _, indices = top_k(tf.fill([2, 6007], float("-inf")), 3)
    np.testing.assert_array_equal(indices, [[0, 1, 2]] * 2)


def test_number_of_columns_may_be_unknown() -> None:
    traced = tf.function(
        lambda values: top_k(values, 2),
        input_signature=[tf.TensorSpec([None, None], tf.float32)],
    )
    _, indices = traced(tf.constant([[1.0, 3.0, 2.0]]))
    np.testing.assert_array_equal(indices, [[1, 2]])


def test_prefers_divisors_as_chunk_widths() -> None:
    # The smallest divisors of at least 48; 6007 is prime.
    assert [chunk_width(n) for n in (6000, 37000, 32768)] == [48, 50, 64]
    assert min(-6007 % width for width in CHUNK_WIDTHS) == -6007 % chunk_width(6007)
