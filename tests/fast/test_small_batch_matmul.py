"""Prepacked and transposed matmuls equal plain matmuls."""

from itertools import product

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import small_batch_matmul, thresholds
from t2t_repro.fast.small_batch_matmul import (
    StepMatmuls,
    halve_weights,
    pad_weights,
    prepack,
    transpose_weights,
)
from t2t_repro.layers import Dense, FeedForward, TokenEmbedding

# (channels, units): large; large and odd; small; small, with padded rows.
SHAPES = [(1024, 1024), (1025, 1027), (7, 5), (7, 128)]
ROWS = [1, 15, 16, 33]


@pytest.fixture(params=[False, True])
def avx512(request, monkeypatch):
    for module in (small_batch_matmul, thresholds):
        monkeypatch.setattr(module, "uses_avx512", lambda: request.param)
    monkeypatch.setattr(small_batch_matmul, "MAX_COPIED_WEIGHTS", 1024 * 1024)
    return request.param


def matrices(shape, rows):
    """Returns matrices of small random integers, which float32 multiplies exactly."""
    generator = np.random.default_rng(1)
    x = generator.integers(-9, 10, (rows, shape[0])).astype(np.float32)
    return x, generator.integers(-9, 10, shape).astype(np.float32)


def exact_product(x, matrix):
    """Multiplies integers in float64, which is faster than int64."""
    return x.astype(np.float64) @ matrix.astype(np.float64)


def dense(matrix, bias=None):
    layer = Dense(matrix.shape[1], use_bias=bias is not None)
    layer.build((None, matrix.shape[0]))
    layer.kernel.assign(matrix)
    if bias is not None:
        layer.bias.assign(bias)
    return layer


def embedding(table):
    layer = TokenEmbedding(*table.shape)
    layer.build()
    layer.table.assign(table)
    return layer


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("avx512")
def test_prepacked_matmul_equals_the_matmul(shape):
    x, matrix = matrices(shape, max(ROWS))
    expected = exact_product(x, matrix)
    bias = np.arange(shape[1], dtype=np.float32)
    layer, table = dense(matrix, bias), embedding(matrix.T)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, x.shape[1]], tf.float32),
            tf.TensorSpec([], tf.int32),
        ],
        autograph=False,
    )
    def computed(x, most_rows):
        matmul = prepack([(layer,), (table,)], most_rows, "float32")
        return matmul(x, layer), matmul.logits(x, table)

    for rows, finished_rows in product(ROWS, [0, 100]):
        result = computed(x[:rows], rows + finished_rows)
        np.testing.assert_array_equal(result[0], expected[:rows] + bias)
        np.testing.assert_array_equal(result[1], expected[:rows])


@pytest.mark.parametrize("shape", SHAPES)
def test_matmul_in_halves_equals_the_matmul(shape):
    x, matrix = matrices(shape, 4)
    bias = np.arange(shape[1], dtype=np.float32)
    layer, table = dense(matrix, bias), embedding(matrix.T)
    matmul = halve_weights([(layer,), (table,)], "float32")
    np.testing.assert_array_equal(matmul(x, layer), exact_product(x, matrix) + bias)
    np.testing.assert_array_equal(matmul.logits(x, table), exact_product(x, matrix))


def test_other_layers_use_their_own_weights():
    x, matrix = matrices((7, 5), 3)
    other, layer, table = dense(matrix), dense(matrix), embedding(matrix.T)
    for matmul in (prepack([(other,)], 3, "float32"), StepMatmuls()):
        np.testing.assert_array_equal(matmul(x, layer), x @ matrix)
        np.testing.assert_array_equal(matmul.logits(x, table), x @ matrix)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("channels", [7, 1024])
@pytest.mark.parametrize("use_bias", [False, True])
def test_layers_with_the_same_input_share_a_matmul(channels, rows, use_bias):
    x, matrix = matrices((channels, 900), rows)
    bias = np.arange(900, dtype=np.float32) * use_bias
    ends = [300, 400]
    layers = tuple(
        dense(part, its_bias if use_bias else None)
        for part, its_bias in zip(
            np.split(matrix, ends, axis=1), np.split(bias, ends), strict=True
        )
    )
    expected = exact_product(x, matrix) + bias
    np.testing.assert_array_equal(StepMatmuls()(x, *layers), expected)
    matmul = prepack([layers], rows, "float32")
    np.testing.assert_array_equal(matmul(x, *layers), expected)
    # A single layer of the group was not prepacked.
    np.testing.assert_array_equal(matmul(x, layers[1]), expected[:, 300:400])


def test_padded_copies_are_made_with_avx2(avx512):
    layer = dense(matrices((7, 128), 40)[1])
    (copy,) = pad_weights([(layer,)], 40, "float32")
    assert copy.shape == ((7, 128) if avx512 else (7, 144))


@pytest.mark.parametrize("units", [1024, 1025])
def test_large_tables_are_not_copied_with_avx2(avx512, units):
    table = embedding(matrices((units, 1024), 40)[1])
    (copy,) = pad_weights([(table,)], 40, "float32")
    assert (copy.shape[1] == 0) == (units == 1025 and not avx512)


def test_prepacked_weights_are_copies():
    x, matrix = matrices((7, 5), 40)
    layer = dense(matrix)
    one, two = (prepack([(layer,)], 40, "float32") for _ in range(2))
    layer.kernel.assign(0 * matrix)
    np.testing.assert_array_equal(one(x, layer), x @ matrix)
    np.testing.assert_array_equal(two(x, layer), x @ matrix)
    assert not np.any(StepMatmuls()(x, layer))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("activation", ["relu", "swish"])
def test_prepacked_feed_forward_equals_the_layer(rows, activation):
    x, _ = matrices((6, 1), rows)
    network = FeedForward(9, activation=activation)
    network.build((None, 6))
    for variable in network.trainable_variables:
        integers = np.random.default_rng(2).integers(-9, 10, variable.shape)
        variable.assign(integers.astype(np.float32))
    groups = [(network.hidden,), (network.output_projection,)]
    result = prepack(groups, rows, "float32").feed_forward(network, x)
    np.testing.assert_allclose(result, network(x), rtol=1e-5)


def test_prepacked_table_adds_its_bias():
    x, matrix = matrices((7, 5), 40)
    table = TokenEmbedding(5, 7, use_bias=True)
    table.build()
    table.table.assign(matrix.T)
    table.bias.assign(np.arange(5, dtype=np.float32))
    result = prepack([(table,)], 40, "float32").logits(x, table)
    np.testing.assert_array_equal(result, x @ matrix + np.arange(5))


@pytest.mark.parametrize(
    ("side", "more_rows", "expected"), [(1024, 0, 2), (1024, 1, 1), (886, 0, 1)]
)
@pytest.mark.parametrize("is_table", [False, True])
def test_divides_matmuls_of_few_rows_and_a_large_matrix(
    avx512, side, more_rows, expected, is_table, monkeypatch
):
    rows = (32 if avx512 else 15) + more_rows
    shapes = []

    def record(left, right):
        shapes.append(left.shape)
        return tf.matmul(left, right)

    x, matrix = matrices((side, side), rows)
    layer = embedding(matrix) if is_table else dense(matrix)
    matmul = prepack([(layer,)], rows, "float32")
    monkeypatch.setattr(small_batch_matmul.ops, "matmul", record)
    (matmul.logits if is_table else matmul)(x, layer)
    assert len(shapes) == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("compiled", [False, True])
def test_transposed_matmul_equals_the_matmul(shape, compiled):
    x, matrix = matrices(shape, 4)
    expected = exact_product(x, matrix)
    layer, table = dense(matrix), embedding(matrix.T)
    parts = tuple(map(dense, np.split(matrix, [shape[1] // 3], axis=1)))
    matmul = transpose_weights([(layer,), parts, (table,)], "float32")

    @tf.function(jit_compile=compiled, autograph=False)
    def products(x):
        return matmul(x, layer), matmul(x, *parts), matmul.logits(x, table)

    for result in products(x):
        np.testing.assert_array_equal(result, expected)
    # `matmul` has copies of the weights, so a later assignment does not change it.
    table.table.assign(np.zeros_like(matrix.T))
    np.testing.assert_array_equal(products(x)[2], expected)
    assert not np.any(StepMatmuls().logits(x, table))
