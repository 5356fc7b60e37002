"""Products of few rows, prepared: the same sums, in another order of reading."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import small_batch_matmul

# (channels, units): large; large and odd; small; small, with rows that are made longer.
SHAPES = [(1024, 1024), (1025, 1027), (7, 5), (7, 128)]
ROWS = [1, 32, 33]


def matrices(shape, rows):
    """Whole numbers, of which float32 adds up thousands without rounding."""
    generator = np.random.default_rng(1)
    x = generator.integers(-9, 10, (rows, shape[0])).astype(np.float32)
    return x, generator.integers(-9, 10, shape).astype(np.float32)


def products(x, kernel, table, most_rows):
    """Returns both products, in a graph that knows no number of rows."""
    kernel, table = keras.Variable(kernel), keras.Variable(table)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, x.shape[1]], tf.float32),
            tf.TensorSpec([], tf.int32),
        ],
        autograph=False,
    )
    def computed(x, most_rows):
        with small_batch_matmul.prepacked([[kernel]], [table], most_rows, "float32"):
            return (
                small_batch_matmul.multiply(x, kernel),
                small_batch_matmul.multiply_transposed(x, table),
            )

    return computed(x, most_rows)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("sentences_that_left", [0, 100])
def test_a_prepared_product_is_the_product(shape, rows, sentences_that_left):
    x, matrix = matrices(shape, rows)
    expected = x.astype(np.int64) @ matrix.astype(np.int64)
    for found in products(x, matrix, matrix.T, rows + sentences_that_left):
        np.testing.assert_array_equal(found, expected)


def test_a_matrix_that_was_not_prepared_is_multiplied_as_it_is():
    x, matrix = matrices((7, 5), 3)
    other, kernel = keras.Variable(matrix), keras.Variable(matrix)
    with small_batch_matmul.prepacked([[other]], [], 3, "float32"):
        np.testing.assert_array_equal(
            small_batch_matmul.multiply(x, kernel), x @ matrix
        )


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("channels", [7, 1024])
def test_kernels_that_belong_together_are_multiplied_side_by_side(channels, rows):
    x, matrix = matrices((channels, 900), rows)
    ends = [300, 400]
    kernels = [keras.Variable(part) for part in np.split(matrix, ends, axis=1)]
    expected = x.astype(np.int64) @ matrix.astype(np.int64)
    np.testing.assert_array_equal(small_batch_matmul.multiply(x, *kernels), expected)
    with small_batch_matmul.prepacked([kernels], [], rows, "float32"):
        np.testing.assert_array_equal(
            small_batch_matmul.multiply(x, *kernels), expected
        )
        # One of them alone was not prepared.
        alone = small_batch_matmul.multiply(x, kernels[1])
    np.testing.assert_array_equal(alone, expected[:, 300:400])


def test_preparations_of_several_models_hold_side_by_side_and_end():
    x, matrix = matrices((7, 5), 40)
    one, two = keras.Variable(matrix), keras.Variable(matrix)
    with (
        small_batch_matmul.prepacked([[one]], [], 40, "float32"),
        small_batch_matmul.prepacked([[two]], [], 40, "float32"),
    ):
        one.assign(0 * matrix)
        two.assign(0 * matrix)
        # What was prepared is a copy.
        np.testing.assert_array_equal(small_batch_matmul.multiply(x, one), x @ matrix)
        np.testing.assert_array_equal(small_batch_matmul.multiply(x, two), x @ matrix)
    assert np.array(small_batch_matmul.multiply(x, one)).max() == 0


@pytest.mark.parametrize(
    ("side", "rows", "expected"), [(1024, 32, 2), (1024, 33, 1), (886, 1, 1)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_few_rows_with_a_large_matrix_are_divided(
    side, rows, expected, transposed, monkeypatch
):
    made = []

    def counted(left, right):
        made.append(left.shape)
        return tf.matmul(left, right)

    x, matrix = matrices((side, side), rows)
    variable = keras.Variable(matrix)
    kernels, tables = ([], [variable]) if transposed else ([[variable]], [])
    multiply = (
        small_batch_matmul.multiply_transposed
        if transposed
        else small_batch_matmul.multiply
    )
    with small_batch_matmul.prepacked(kernels, tables, rows, "float32"):
        monkeypatch.setattr(small_batch_matmul.ops, "matmul", counted)
        multiply(x, variable)
    assert len(made) == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_product_with_halves_is_the_product(shape, compiled):
    x, matrix = matrices(shape, 4)
    expected = x.astype(np.int64) @ matrix.astype(np.int64)
    kernel, table = keras.Variable(matrix), keras.Variable(matrix.T)
    ends = [shape[1] // 3]
    parts = [keras.Variable(part) for part in np.split(matrix, ends, axis=1)]
    halves = small_batch_matmul.SplitWeights([[kernel], parts], [table], "float32")

    @tf.function(jit_compile=compiled, autograph=False)
    def products(x):
        with halves.used():
            return (
                small_batch_matmul.multiply(x, kernel),
                small_batch_matmul.multiply(x, *parts),
                small_batch_matmul.multiply_transposed(x, table),
            )

    for found in products(x):
        np.testing.assert_array_equal(found, expected)
    # Copies are used inside the context alone.
    table.assign(np.zeros_like(matrix.T))
    np.testing.assert_array_equal(products(x)[2], expected)
    assert not np.any(small_batch_matmul.multiply_transposed(x, table))
