"""int8 matmuls equal float32 matmuls within the rounding error."""

import gc
import json
import os
import subprocess
import weakref
from functools import cache
from pathlib import Path

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
)
from t2t_repro.fast.range_observer import RangeObserver
from t2t_repro.layers.attention import MASKED
from t2t_repro.layers.functional import normalize
from t2t_repro.models.generate import generate, make_decoder
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.variables import named_variables
from tests import forks
from tests.serving import small

pytestmark = pytest.mark.skipif(
    int8_matmul.unsupported_reason() is not None,
    reason=f"{int8_matmul.unsupported_reason()}",
)
VOCAB_SIZE = 30
LARGEST = {7: 64, 8: 127}
REPLACED = ("kernel", "hidden/bias", "output/bias", "embedding/table")
SATURATES = not int8_matmul.unsupported_reason() and int8_matmul.exact_weight_bits() < 8
EIGHT_BITS = pytest.param(
    8, marks=pytest.mark.skipif(SATURATES, reason="sums of 8-bit weights saturate")
)
with_both_bits = pytest.mark.parametrize("bits", [7, EIGHT_BITS])


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def in_graph(function):
    return tf.function(function, autograph=False, reduce_retracing=True)


@with_both_bits
@pytest.mark.parametrize("rows", [1, 7, 200])
@pytest.mark.parametrize("shape", [(64, 96), (512, 2048), (5, 3)])
def test_integers_are_multiplied_exactly(rows, shape, bits):
    generator = np.random.default_rng(1)
    x = generator.integers(-100, 156, (rows, shape[0])).astype(np.float32)
    most = LARGEST[bits]
    matrix = generator.integers(-most, most + 1, shape).astype(np.float32)
    matrix[0] = most
    bias = generator.integers(-99, 100, shape[1]).astype(np.float32)
    product = QuantizedMatmul(matrix, bias, ActivationRange(-100, 155), bits)
    # float64 is exact for these integers, and faster than int64.
    expected = x.astype(np.float64) @ matrix.astype(np.float64) + bias
    np.testing.assert_array_equal(in_graph(product)(x), expected)


@with_both_bits
@pytest.mark.parametrize(
    "bounds", [ActivationRange(-5, 5), ActivationRange(0, 5), ActivationRange(-1, 5)]
)
def test_error_is_within_the_rounding_of_both_factors(bounds, bits):
    x, matrix = normal(9, 512), normal(512, 64, seed=1) * normal(64, seed=2)
    x = np.clip(x, *bounds)
    result = in_graph(QuantizedMatmul(matrix, 0.0, bounds, bits))(x)
    step = (bounds.high - bounds.low) / 255
    scale = np.abs(matrix).max(axis=0) / LARGEST[bits]
    # Rounding changes each input, each weight and the zero point by at most half a
    # quantization step.
    most = step * np.abs(matrix).sum(axis=0) + (np.abs(x) + step).sum(1)[:, None] * (
        scale / 2
    )
    assert np.all(np.abs(result - x @ matrix) <= most)
    # Errors of opposite signs partly cancel, so the mean error is much smaller.
    assert np.abs(result - x @ matrix).mean() < 0.02 * np.abs(x @ matrix).mean()


def test_clips_values_outside_of_the_activation_range():
    product = QuantizedMatmul(np.eye(4, dtype=np.float32), 0.0, ActivationRange(-1, 1))
    result = in_graph(product)(np.array([[-9, -1, 1, 9]], np.float32))
    np.testing.assert_allclose(result, [[-1, -1, 1, 1]], atol=1.01 / 255)


def test_zero_rows_give_zero_up_to_float32_rounding():
    matrix = normal(64, 8)
    product = QuantizedMatmul(matrix, 0.0, ActivationRange(-0.7, 2.9))
    result = in_graph(product)(np.zeros((3, 64), "f"))
    # The contribution of the zero point, at most 0.71 times these sums, is subtracted
    # again.
    most = 0.71 * np.abs(matrix).sum(axis=0) * 2.0**-23
    assert np.all(np.abs(result) <= most)


@with_both_bits
def test_relu_outputs_are_the_rows_of_the_next_matmul(bits):
    most = LARGEST[bits]
    generator = np.random.default_rng(3)
    x, matrix = generator.integers(0, 31, (7, 20)), generator.integers(-9, 10, (20, 33))
    matrix[0], x[:, 0] = most, 0  # Gives each column scale 1.
    bias = generator.integers(-9, 10, 33)
    positive = np.maximum(x @ matrix + bias, 0)
    assert (positive == 0).any() and positive.max() > 255
    # The quantization step is 2. Halves are rounded to even; values above 510 are
    # clipped.
    bounds = ActivationRange(0, 510)
    codes = np.clip(np.rint(positive / 2), 0, 255)
    first = QuantizedMatmul(
        matrix.astype("f"), bias.astype("f"), ActivationRange(0, 255), bits
    )
    rectified = in_graph(lambda x: tf.bitcast(first(x, bounds.high), tf.uint8))
    np.testing.assert_array_equal(rectified(x.astype("f")), codes)
    second = QuantizedMatmul(np.eye(33, dtype="f") * most, 0.0, bounds, bits)
    both = in_graph(QuantizedFeedForward(first, second))(x.astype("f"))
    np.testing.assert_array_equal(both, codes * 2 * most)


@pytest.mark.parametrize("bits", [7, 8])
def test_lookup_equals_the_table_within_half_a_step(bits):
    table, ids = normal(30, 16), np.array([[3, 29, 0], [3, 1, 2]])
    quantized = QuantizedMatmul(table.T, weight_bits=bits)
    result = in_graph(lambda ids: quantized.lookup(table, ids))(ids)
    most = np.abs(table[ids]).max(axis=-1, keepdims=True) / LARGEST[bits] / 2
    assert np.all(np.abs(result - table[ids]) <= most * 1.001)


@pytest.fixture(params=["post", "pre"])
def norm(request):
    return request.param


def model_of(norm):
    """Installs the optimized implementations; returns a model equal in every call."""
    fast.install("CPU")
    return small.random_model(VOCAB_SIZE, num_layers=2, norm=norm)


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


def traced_search(model):
    """Returns a search of any inputs, which is traced once."""
    decoder = make_decoder(model, SEARCH.beam_size)
    search = tf.function(
        lambda inputs: generate(SEARCH, decoder, inputs),
        [tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )

    def results(inputs):
        result = search(inputs)
        return result.ids.numpy(), result.scores.numpy()

    return results


def search_results(model, inputs):
    return traced_search(model)(inputs)


def model_scores(model):
    return in_graph(lambda: log_probs(model, INPUTS, INPUTS))()


@cache
def in_float32(norm):
    """Returns the results of `search_results` in float32."""
    return search_results(model_of(norm), INPUTS)


@cache
def observed(norm):
    """Observes a search; returns its results, the observer and the restored model."""
    model = model_of(norm)
    with RangeObserver(model) as observer:
        results = search_results(model, INPUTS)
    return results, observer, model


@cache
def int8_search(norm):
    """Returns a quantized model and its `traced_search`."""
    model = model_of(norm)
    quantization.quantize_model(model, observed(norm)[1].bounds(1.0))
    search = traced_search(model)
    search(INPUTS)  # Traces it.
    return model, search


@pytest.mark.medium
def test_observer_keeps_results_and_finds_all_ranges(norm):
    expected = in_float32(norm)
    result, observer, _ = observed(norm)
    np.testing.assert_array_equal(result[0], expected[0])
    np.testing.assert_allclose(result[1], expected[1], atol=1e-4)
    bounds = observer.bounds(1.0)
    assert len(bounds) == 2 * 4 + 2 * 7 + 1
    for name, (low, high) in bounds.items():
        assert low < high
        # ReLU outputs are not negative.
        assert (low == 0) == name.endswith("feed_forward/output/kernel")
    narrower = observer.bounds(0.5)
    assert all(narrower[name].high < high for name, (_, high) in bounds.items())


@pytest.mark.medium
def test_search_and_model_give_equal_scores_in_int8(norm):
    model, search = int8_search(norm)
    fast.install("CPU")
    ids, scores = search(INPUTS)
    assert np.abs(scores - in_float32(norm)[1])[:, 0].max() > 1e-4
    best = tf.constant(ids[:, 0])
    score = in_graph(lambda ids: tf.reduce_sum(log_probs(model, INPUTS, ids), 1))
    tokens = np.count_nonzero(ids[:, 0], axis=1)
    result = SEARCH.scoring.log_prob(scores[:, 0], tokens)
    np.testing.assert_allclose(result, score(best), atol=1e-4)


@pytest.mark.medium
def test_int8_translations_do_not_depend_on_the_batch(norm):
    _, search = int8_search(norm)
    together = search(INPUTS)
    for row, (ids, scores) in enumerate(zip(*together, strict=True)):
        length = np.count_nonzero(INPUTS[row])
        alone = search(INPUTS[row : row + 1, :length])
        width = alone[0].shape[2]
        np.testing.assert_array_equal(alone[0][0], ids[:, :width])
        np.testing.assert_allclose(alone[1][0], scores, atol=1e-5)


@pytest.mark.parametrize("columns", [41, 64, 97])
def test_softmax_is_bit_identical_with_more_masked_columns(columns):
    logits = 3 * normal(3, 8, 4, 40)
    places = np.sort(np.random.default_rng(columns).permutation(columns)[:40])
    wider = np.full((*logits.shape[:-1], columns), MASKED, np.float32)
    wider[..., places] = logits
    softmax = in_graph(width_independent_softmax)
    expected = softmax(logits)
    np.testing.assert_array_equal(softmax(wider).numpy()[..., places], expected)
    np.testing.assert_allclose(expected, tf.nn.softmax(logits), atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2, 4, 7, 28])
def test_normalization_is_bit_identical_with_fewer_rows(rows):
    x, scale, bias = normal(100, 512), normal(512, seed=1), normal(512, seed=2)
    # As in a model: any number of rows, and parameters that are not constants.
    specs = [tf.TensorSpec(shape) for shape in ([None, 512], [512], [512])]
    result = tf.function(
        lambda *given: normalize_in_float64(*given, 1e-6), specs, autograph=False
    )
    every = result(x, scale, bias)
    np.testing.assert_array_equal(result(x[:rows], scale, bias), every[:rows])
    expected = normalize.reference(x, scale, bias, 1e-6)
    np.testing.assert_allclose(every, expected, atol=1e-5)


@pytest.mark.medium
def test_observing_a_model_or_quantizing_another_does_not_change_it():
    before = *in_float32("pre"), model_scores(model_of("pre"))
    _, observer, model = observed("pre")
    other = model_of("pre")
    quantization.quantize_model(other, observer.bounds(1.0))
    assert quantization.find_weight_bits(other) == int8_matmul.exact_weight_bits()
    assert quantization.find_weight_bits(model) is None
    # The model is traced again.
    after = *search_results(model, INPUTS), model_scores(model)
    for result, expected in zip(after, before, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.medium
def test_quantized_models_have_no_float32_matrices(norm):
    model = model_of(norm)
    before = named_variables(model)
    assert quantization.find_codes(model) == []
    released = [weakref.ref(v.value) for n, v in before.items() if n.endswith("kernel")]
    names = [name for name in before if not name.endswith(REPLACED)]
    del before
    quantization.quantize_model(model, observed(norm)[1].bounds(1.0))
    assert list(named_variables(model)) == names
    gc.collect()
    assert [reference() for reference in released] == [None] * len(released)
    # 4 per encoder layer, 7 per decoder layer, and the shared table.
    assert len(quantization.find_codes(model)) == 2 * 4 + 2 * 7 + 1


@pytest.mark.medium
def test_no_column_of_a_shared_matrix_is_multiplied_twice(norm):
    model, _ = int8_search(norm)
    fast.install("CPU")
    scores = in_graph(lambda: log_probs(model, INPUTS, INPUTS))
    # TensorFlow's optimizer, which merges equal operations, has not seen this graph.
    operations = scores.get_concrete_function().graph.get_operations()
    matmuls = [each for each in operations if each.type == "_QuantizedMatMul"]
    units = sum(each.inputs[2].shape[0] for each in matmuls)  # The lengths of biases.
    matrices = quantization.find_codes(model)
    assert units == sum(matrix.shape[0] for matrix in matrices)


@pytest.mark.skipif("ONEDNN_MAX_CPU_ISA" in os.environ, reason="VNNI is disabled")
def test_weights_have_8_bits_on_processors_with_vnni():
    has_vnni = "_vnni" in Path("/proc/cpuinfo").read_text(encoding="ascii")
    assert int8_matmul.exact_weight_bits() == (8 if has_vnni else 7)


ON_AVX2 = """
import json
import numpy as np
import tensorflow as tf
from t2t_repro.fast import int8_matmul
from t2t_repro.fast.quantization import ActivationRange, QuantizedMatmul
from t2t_repro.serving.signatures import add_processor_check

def extreme_sum(bits, code):
    product = QuantizedMatmul(
        np.full((64, 16), code, "f"), 0.0, ActivationRange(0, 255), bits
    )
    sums = tf.function(product, autograph=False)(tf.fill([2, 64], 255.0))
    return np.unique(sums).tolist()

def answer(bits):
    function = add_processor_check(lambda text: {"text": text}, bits)
    try:
        return tf.function(function, autograph=False)("a")["text"].numpy().decode()
    except tf.errors.InvalidArgumentError as error:
        return error.message

print(json.dumps({
    "reason": int8_matmul.unsupported_reason(),
    "bits": int8_matmul.exact_weight_bits(),
    "sums": [extreme_sum(7, 64), extreme_sum(7, -64), extreme_sum(8, 127)],
    "answers": [answer(7), answer(8)],
}))
"""


@pytest.mark.medium
def test_uses_7_bits_on_processors_whose_sums_of_8_bits_saturate():
    process = subprocess.run(
        [forks.python(), "-c", ON_AVX2],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(process.stdout)
    assert (found["reason"], found["bits"]) == (None, 7)
    # 64 channels with the largest activation, 255. With 8 bits, each of the 32 pairs
    # saturates at 32,767.
    total = 64 * 255 * 64
    assert found["sums"] == [[total], [-total], [32 * 32_767]]
    assert found["answers"][0] == "a"
    assert "does not sum 8-bit weights exactly; export" in found["answers"][1]
