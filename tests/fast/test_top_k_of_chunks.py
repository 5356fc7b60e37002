"""The chunked top k against a stable sort."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.top_k_of_chunks import CHUNK_WIDTHS, chunk_width, top_k


# Below the threshold, at it, with divisors, and a prime number of columns.
@pytest.mark.parametrize("columns", [5, 1000, 1024, 6000, 6007])
@pytest.mark.parametrize("digits", [0, 6])
def test_equals_a_stable_sort_also_among_equals(columns: int, digits: int) -> None:
    values = np.random.default_rng(columns).normal(size=(7, columns)).round(digits)
    values = values.astype("float32")
    largest, found = top_k(tf.constant(values), 9)
    expected = np.argsort(-values, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(largest, np.take_along_axis(values, expected, 1))


def test_rows_of_minus_infinity_never_yield_the_padding() -> None:
    _, found = top_k(tf.fill([2, 6007], float("-inf")), 3)
    np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)


def test_columns_may_be_unknown_when_traced() -> None:
    traced = tf.function(
        lambda values: top_k(values, 2),
        input_signature=[tf.TensorSpec([None, None], tf.float32)],
    )
    _, found = traced(tf.constant([[1.0, 3.0, 2.0]]))
    np.testing.assert_array_equal(found, [[1, 2]])


def test_a_divisor_is_preferred_so_that_nothing_is_copied() -> None:
    # The smallest divisors from 48 on; 6007 is prime.
    assert [chunk_width(n) for n in (6000, 37000, 32768)] == [48, 50, 64]
    assert min(-6007 % width for width in CHUNK_WIDTHS) == -6007 % chunk_width(6007)
