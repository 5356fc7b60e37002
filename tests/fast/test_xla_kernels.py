"""XLA kernels for a CPU equal the reference, except for the random numbers."""

import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import cross_entropy, gpu_kernels, xla_kernels
from t2t_repro.layers import functional, label_smoothing, seeded_dropout

ROWS, CHANNELS = 24, 16


def normal(*shape, seed=0):
    draw = np.random.default_rng(seed).normal(size=shape)
    return tf.constant(draw, tf.float32)


def gradients(matmul, x, matrix, upstream):
    with tf.GradientTape() as tape:
        tape.watch([x, matrix])
        y = matmul(x, matrix)
    return y, *tape.gradient(y, [x, matrix], upstream)


def slow_matmuls(compiled, *arguments):
    """Counts the matmuls whose left operand XLA gathers element by element."""
    program = compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")
    return len(re.findall(r"\{1,0\} dot\(.*\), lhs_contracting_dims=\{0\}", program))


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")),
    reason="counts operations of XLA's CPU backend",
)
@pytest.mark.parametrize("name", ["linear", "tied_logits"])
@pytest.mark.parametrize("units", [8, 40])
def test_matmul_and_gradients_equal_numpy(units, name):
    x, upstream = normal(ROWS, CHANNELS), normal(ROWS, units, seed=1)
    kernel = normal(CHANNELS, units, seed=2)
    a, dy, w = (each.numpy().astype("float64") for each in (x, upstream, kernel))
    by_matrix = a.T @ dy
    if name == "tied_logits":
        kernel, by_matrix = tf.transpose(kernel), by_matrix.T
    compiled = tf.function(gradients, jit_compile=True)
    arguments = x, kernel, upstream
    results = compiled(getattr(xla_kernels, name), *arguments)
    for each, reference in zip(results, (a @ w, dy @ w.T, by_matrix), strict=True):
        np.testing.assert_allclose(each, reference, atol=2e-5)
    assert slow_matmuls(compiled, getattr(xla_kernels, name), *arguments) == 0
    reference = getattr(functional, name).reference
    assert slow_matmuls(compiled, reference, *arguments) == 1


def test_matmul_outside_xla_is_the_reference():
    x, table = normal(ROWS, CHANNELS), normal(40, CHANNELS, seed=1)
    np.testing.assert_array_equal(
        xla_kernels.tied_logits(x, table), functional.tied_logits.reference(x, table)
    )
    bias, kernel = normal(40), tf.transpose(table)
    np.testing.assert_array_equal(
        xla_kernels.linear(x, kernel, bias),
        functional.linear.reference(x, kernel, bias),
    )


@pytest.mark.parametrize("rows", [1, 4])
def test_int8_matmul_is_exact(rows):
    generator = np.random.default_rng(1)
    values = generator.integers(0, 256, (rows, 512))
    codes = generator.integers(-127, 128, (30, 512))
    values[0], codes[0] = 255, 127  # The largest possible sum.

    @tf.function(jit_compile=True)
    def product(x):
        # The range gives the uint8 value v to the activation v / 2 - 10.
        quantized = xla_kernels.quantize(x, -10.0, 117.5)
        matrix = tf.bitcast(tf.constant(codes, tf.int8), tf.qint8)
        sums = codes.sum(axis=1, dtype=np.int32)
        return xla_kernels.int8_matmul(quantized, matrix, sums)

    x = tf.constant(values / 2 - 10, tf.float32)
    # Activations are rounded to the nearest value, and clipped to the range.
    x = tf.where(x > 117, 200.0, tf.where(x < -9.9, -20.0, x + 0.2))
    np.testing.assert_array_equal(product(x), values @ codes.T)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_equal_the_reference(smoothing):
    logits, labels = 5 * normal(ROWS, 40), tf.range(ROWS)
    # The label's probability underflows to 0 in float32.
    logits = tf.tensor_scatter_nd_update(logits, [[3, 3]], [-200.0])
    upstream = normal(ROWS, seed=1)

    def loss_and_gradient(form, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = form(logits, labels, smoothing)
        return losses, tape.gradient(losses, logits, upstream)

    compiled = tf.function(loss_and_gradient, jit_compile=True)
    results = compiled(cross_entropy.smoothed_cross_entropy, logits)
    wide = tf.cast(logits, tf.float64)
    upstream = tf.cast(upstream, tf.float64)
    expected = loss_and_gradient(label_smoothing.smoothed_cross_entropy.reference, wide)
    for each, reference in zip(results, expected, strict=True):
        np.testing.assert_allclose(each, reference, rtol=1e-6, atol=2e-5)


@pytest.mark.parametrize("kernels", [xla_kernels, gpu_kernels])
def test_random_numbers_are_uniform_and_depend_on_the_seed(kernels):
    count = 100_000

    @tf.function(jit_compile=True)
    def draw(seed):
        return kernels.uniform((count,), seed)

    one, same, other = (
        draw(tf.constant(seed)).numpy() for seed in ([1, 2], [1, 2], [2, 2])
    )
    np.testing.assert_array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / count**0.5
    assert one.min() >= 0 and one.max() < 1
    # Each tenth of [0, 1) has its expected frequency, within four standard deviations.
    shares = np.histogram(one, 10, (0, 1))[0] / count
    np.testing.assert_allclose(shares, 0.1, atol=4 * (0.1 * 0.9 / count) ** 0.5)


@pytest.mark.parametrize("kernels", [xla_kernels, gpu_kernels])
def test_random_numbers_outside_xla_are_those_of_the_reference(kernels):
    seed = tf.constant([1, 2])
    results = kernels.uniform((5,), seed)
    np.testing.assert_array_equal(results, seeded_dropout.uniform.reference((5,), seed))
