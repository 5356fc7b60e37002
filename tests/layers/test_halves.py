"""Large products on two cores: the same sums, in two operations."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers import halves

CASES = {
    "product": (halves.product, lambda x, matrix: x @ matrix),
    "transposed": (halves.product_with_transposed, lambda x, matrix: x @ matrix.T),
}


def matrices(rows, columns, channels):
    """Whole numbers, of which float32 adds up thousands without rounding."""
    generator = np.random.default_rng(1)
    x = generator.integers(-9, 10, (3, channels)).astype(np.float32)
    return x, generator.integers(-9, 10, (rows, columns)).astype(np.float32)


def products_in(function, *arrays):
    """Counts the matrix products of the graph."""
    graph = tf.function(function, autograph=False).get_concrete_function(*arrays).graph
    return sum(operation.type == "MatMul" for operation in graph.get_operations())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", [(1024, 1024), (1025, 1027), (7, 5)])
def test_a_product_is_what_it_is_whole(name, shape):
    divided, whole = CASES[name]
    x, matrix = matrices(*shape, shape[name == "transposed"])
    np.testing.assert_array_equal(divided(x, tf.constant(matrix)), whole(x, matrix))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("side", "products"), [(1024, 2), (1023, 1)])
def test_large_matrices_alone_are_divided(name, side, products):
    arrays = [tf.constant(array) for array in matrices(side, side, side)]
    assert products_in(CASES[name][0], *arrays) == products
