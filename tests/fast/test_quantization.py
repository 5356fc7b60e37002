"""Products in 8 bits are those of the formulas, within the error of the rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul, quantization
from t2t_repro.fast.flat_attention import width_independent_softmax
from t2t_repro.fast.normalization import normalize_in_float64
from t2t_repro.fast.quantization import (
    ActivationRange,
    QuantizedFeedForward,
    QuantizedMatmul,
    RangeObserver,
)
from t2t_repro.layers.attention import MASKED
from t2t_repro.layers.functional import normalize
from t2t_repro.models.generate import decoder_of, generate
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.variables import named_variables
from tests.serving import small

pytestmark = pytest.mark.skipif(
    int8_matmul.unsupported_reason() is not None,
    reason=f"{int8_matmul.unsupported_reason()}",
)
VOCAB_SIZE = 30


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def in_graph(function):
    return tf.function(function, autograph=False, reduce_retracing=True)


@pytest.mark.parametrize("rows", [1, 7, 200])
@pytest.mark.parametrize("shape", [(64, 96), (512, 2048), (5, 3)])
def test_whole_numbers_are_multiplied_exactly(rows, shape):
    generator = np.random.default_rng(1)
    x = generator.integers(-100, 156, (rows, shape[0])).astype(np.float32)
    matrix = generator.integers(-127, 128, shape).astype(np.float32)
    matrix[0] = 127
    bias = generator.integers(-99, 100, shape[1]).astype(np.float32)
    product = QuantizedMatmul(matrix, bias, ActivationRange(-100, 155))
    expected = x.astype(np.int64) @ matrix.astype(np.int64) + bias.astype(np.int64)
    np.testing.assert_array_equal(in_graph(product)(x), expected)


@pytest.mark.parametrize(
    "bounds", [ActivationRange(-5, 5), ActivationRange(0, 5), ActivationRange(-1, 5)]
)
def test_the_error_is_that_of_rounding_both_factors(bounds):
    x, matrix = normal(9, 512), normal(512, 64, seed=1) * normal(64, seed=2)
    x = np.clip(x, *bounds)
    found = in_graph(QuantizedMatmul(matrix, 0.0, bounds))(x)
    step = (bounds.high - bounds.low) / 255
    scale = np.abs(matrix).max(axis=0) / 127
    # A factor is rounded by half a step at most, and zero to a whole one.
    most = step * np.abs(matrix).sum(axis=0) + (np.abs(x) + step).sum(1)[:, None] * (
        scale / 2
    )
    assert np.all(np.abs(found - x @ matrix) <= most)
    # Errors of either sign cancel: much less in the mean.
    assert np.abs(found - x @ matrix).mean() < 0.02 * np.abs(x @ matrix).mean()


def test_values_beyond_the_bounds_are_cut():
    product = QuantizedMatmul(np.eye(4, dtype=np.float32), 0.0, ActivationRange(-1, 1))
    found = in_graph(product)(np.array([[-9, -1, 1, 9]], np.float32))
    np.testing.assert_allclose(found, [[-1, -1, 1, 1]], atol=1.01 / 255)


def test_zero_stays_zero_but_for_the_rounding_of_float32():
    matrix = normal(64, 8)
    product = QuantizedMatmul(matrix, 0.0, ActivationRange(-0.7, 2.9))
    found = in_graph(product)(np.zeros((3, 64), "f"))
    # Zero is some step; its product, at most 0.71 times these sums, is taken off again.
    most = 0.71 * np.abs(matrix).sum(axis=0) * 2.0**-23
    assert np.all(np.abs(found) <= most)


def test_what_is_rectified_is_the_next_products_rows():
    generator = np.random.default_rng(3)
    x, matrix = generator.integers(0, 31, (7, 20)), generator.integers(-9, 10, (20, 33))
    matrix[0], x[:, 0] = 127, 0  # So that a step of each column is 1.
    bias = generator.integers(-9, 10, 33)
    positive = np.maximum(x @ matrix + bias, 0)
    assert (positive == 0).any() and positive.max() > 255
    # A step is 2, and halves are rounded to even ones; what is above 510 is cut.
    bounds = ActivationRange(0, 510)
    codes = np.clip(np.rint(positive / 2), 0, 255)
    first = QuantizedMatmul(
        matrix.astype("f"), bias.astype("f"), ActivationRange(0, 255)
    )
    rectified = in_graph(lambda x: tf.bitcast(first(x, bounds.high), tf.uint8))
    np.testing.assert_array_equal(rectified(x.astype("f")), codes)
    second = QuantizedMatmul(np.eye(33, dtype="f") * 127, 0.0, bounds)
    both = in_graph(QuantizedFeedForward(first, second))(x.astype("f"))
    np.testing.assert_array_equal(both, codes * 2 * 127)


def test_rows_are_those_of_the_table_within_half_a_step():
    table, ids = normal(30, 16), np.array([[3, 29, 0], [3, 1, 2]])
    quantized = QuantizedMatmul(table.T)
    found = in_graph(lambda ids: quantized.lookup(table, ids))(ids)
    most = np.abs(table[ids]).max(axis=-1, keepdims=True) / 127 / 2
    assert np.all(np.abs(found - table[ids]) <= most * 1.001)


@pytest.fixture(params=["post", "pre"])
def model(request):
    fast.install("CPU")
    return small.random_model(VOCAB_SIZE, num_layers=2, norm=request.param)


def sentences(lengths):
    rows = np.zeros((len(lengths), max(lengths)), np.int32)
    for row, length in zip(rows, lengths, strict=True):
        row[: length - 1] = np.random.default_rng(length).integers(
            2, VOCAB_SIZE, length - 1
        )
        row[length - 1] = 1
    return rows


INPUTS = sentences([3, 9, 5, 12])
SEARCH = DecodingConfig(beam_size=3, extra_length=3)


def searched(model, inputs):
    decoder = decoder_of(model, SEARCH.beam_size)
    found = in_graph(lambda inputs: generate(SEARCH, decoder, inputs))(inputs)
    return found.ids.numpy(), found.scores.numpy()


def scored(model):
    return in_graph(lambda: log_probs(model, INPUTS, INPUTS))()


def watched(model, share=1.0):
    with RangeObserver(model) as observer:
        searched(model, INPUTS)
    return observer.bounds(share)


def test_a_watched_search_finds_the_same_and_bounds_of_every_product(model):
    expected = searched(model, INPUTS)
    with RangeObserver(model) as observer:
        found = searched(model, INPUTS)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)
    bounds = observer.bounds(1.0)
    assert len(bounds) == 2 * 4 + 2 * 7 + 1
    for name, (low, high) in bounds.items():
        assert low < high
        # What a rectifier makes is not negative.
        assert (low == 0) == name.endswith("feed_forward/output/kernel")
    narrower = observer.bounds(0.5)
    assert all(narrower[name].high < high for name, (_, high) in bounds.items())


def test_the_search_and_the_whole_model_score_alike_in_eight_bits(model):
    in_float32 = searched(model, INPUTS)[1]
    quantization.quantize_model(model, watched(model))
    ids, scores = searched(model, INPUTS)
    assert np.abs(scores - in_float32)[:, 0].max() > 1e-4
    best = tf.constant(ids[:, 0])
    score = in_graph(lambda ids: tf.reduce_sum(log_probs(model, INPUTS, ids), 1))
    tokens = np.count_nonzero(ids[:, 0], axis=1)
    found = SEARCH.scoring.log_prob(scores[:, 0], tokens)
    np.testing.assert_allclose(found, score(best), atol=1e-4)


def test_a_sentence_is_translated_alike_whatever_its_batch(model):
    quantization.quantize_model(model, watched(model))
    together = searched(model, INPUTS)
    for row, (ids, scores) in enumerate(zip(*together, strict=True)):
        length = np.count_nonzero(INPUTS[row])
        alone = searched(model, INPUTS[row : row + 1, :length])
        width = alone[0].shape[2]
        np.testing.assert_array_equal(alone[0][0], ids[:, :width])
        np.testing.assert_allclose(alone[1][0], scores, atol=1e-5)


@pytest.mark.parametrize("columns", [41, 64, 97])
def test_a_softmax_is_the_same_bits_however_much_is_hidden(columns):
    logits = 3 * normal(3, 8, 4, 40)
    places = np.sort(np.random.default_rng(columns).permutation(columns)[:40])
    wider = np.full((*logits.shape[:-1], columns), MASKED, np.float32)
    wider[..., places] = logits
    softmax = in_graph(width_independent_softmax)
    expected = softmax(logits)
    np.testing.assert_array_equal(softmax(wider).numpy()[..., places], expected)
    np.testing.assert_allclose(expected, tf.nn.softmax(logits), atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 4, 7, 28])
def test_a_row_is_normalised_to_the_same_bits_whatever_the_others(rows):
    x, scale, bias = normal(100, 512), normal(512, seed=1), normal(512, seed=2)
    # As in a model: any number of rows, and of the others no constants.
    specs = [tf.TensorSpec(shape) for shape in ([None, 512], [512], [512])]
    found = tf.function(
        lambda *given: normalize_in_float64(*given, 1e-6), specs, autograph=False
    )
    every = found(x, scale, bias)
    np.testing.assert_array_equal(found(x[:rows], scale, bias), every[:rows])
    expected = normalize.reference(x, scale, bias, 1e-6)
    np.testing.assert_allclose(every, expected, atol=1e-5)


def test_a_quantized_model_leaves_other_models_bit_identical(model):
    expected = [*searched(model, INPUTS), scored(model)]
    other = small.random_model(VOCAB_SIZE, norm="pre")
    quantization.quantize_model(other, watched(other))
    assert quantization.is_quantized(other)
    assert not quantization.is_quantized(model)
    # Each call traces the model anew.
    for found, before in zip(
        [*searched(model, INPUTS), scored(model)], expected, strict=True
    ):
        np.testing.assert_array_equal(found, before)


def test_an_observed_model_is_as_before_afterwards(model):
    expected = [*searched(model, INPUTS), scored(model)]
    watched(model)
    for found, before in zip(
        [*searched(model, INPUTS), scored(model)], expected, strict=True
    ):
        np.testing.assert_array_equal(found, before)


def test_a_quantized_graph_reads_no_matrix_in_float32(model):
    weights, matrices = quantization.graph_variables(model)
    assert (len(weights), matrices) == (len(model.trainable_variables), [])
    quantization.quantize_model(model, watched(model))
    weights, matrices = quantization.graph_variables(model)
    replaced = ("kernel", "hidden/bias", "output/bias", "embedding/table")
    assert [id(weight) for weight in weights] == [
        id(variable.value)
        for name, variable in named_variables(model).items()
        if not name.endswith(replaced)
    ]
    # 4 for an encoder layer, 7 for a decoder layer, and the shared table.
    assert len(matrices) == 2 * 4 + 2 * 7 + 1


@pytest.mark.medium
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, "VNNI"),
        ({}, "None"),
    ],
)
def test_where_sums_are_cut_it_is_told(environment, reason):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from t2t_repro.fast import int8_matmul\n"
            "print(int8_matmul.unsupported_reason())",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert reason in done.stdout
