"""Large products on two cores: the same sums, in two operations."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers import halves

CASES = {
    "product": (halves.product, lambda x, matrix: x @ matrix),
    "transposed": (halves.product_with_transposed, lambda x, matrix: x @ matrix.T),
}


def matrices(name, shape, rows):
    """Whole numbers, of which float32 adds up thousands without rounding."""
    generator = np.random.default_rng(1)
    channels = shape[name == "transposed"]
    x = generator.integers(-9, 10, (rows, channels)).astype(np.float32)
    return x, generator.integers(-9, 10, shape).astype(np.float32)


def traced(function, x, matrix):
    """Returns the function in a graph that knows no number of rows."""
    rows = tf.TensorSpec([None, x.shape[1]], tf.float32)
    weights = tf.TensorSpec(matrix.shape, tf.float32)
    return tf.function(function, input_signature=[rows, weights], autograph=False)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(1024, 1024), (1025, 1027), (7, 5)])
@pytest.mark.parametrize("rows", [1, 32, 33])
def test_a_product_is_what_it_is_whole(name, shape, rows):
    divided, whole = CASES[name]
    x, matrix = matrices(name, shape, rows)
    found = traced(divided, x, matrix)(x, matrix)
    expected = whole(x.astype(np.int64), matrix.astype(np.int64))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("side", "rows", "products"), [(1024, 32, 2), (1024, 33, 1), (1023, 1, 1)]
)
def test_few_rows_with_a_large_matrix_are_divided(
    name, side, rows, products, monkeypatch
):
    made = []

    def counted(left, right):
        made.append(left.shape)
        return tf.matmul(left, right)

    monkeypatch.setattr(halves.ops, "matmul", counted)
    CASES[name][0](*matrices(name, (side, side), rows))
    assert len(made) == products
