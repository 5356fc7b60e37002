"""What XLA compiles for a CPU: the same products, gradients and losses, other draws."""

import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast import cross_entropy, small_batch_matmul, xla_kernels
from t2t_repro.layers import label_smoothing, seeded_dropout

ROWS, CHANNELS = 24, 16


def normal(*shape, seed=0):
    drawn = np.random.default_rng(seed).normal(size=shape)
    return tf.constant(drawn, tf.float32)


def gradients(multiplied, x, matrix, upstream, transposed):
    with tf.GradientTape() as tape:
        tape.watch([x, matrix])
        y = multiplied(x, matrix, transposed)
    return y, *tape.gradient(y, [x, matrix], upstream)


def slow_products(compiled, *arguments):
    """Counts the products whose left operand XLA has to gather."""
    program = compiled.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")
    return len(re.findall(r"\{1,0\} dot\(.*\), lhs_contracting_dims=\{0\}", program))


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="counts what a CPU's XLA makes"
)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("units", [8, 40])
def test_a_product_and_its_gradients_are_those_of_numpy(units, transposed):
    x, upstream = normal(ROWS, CHANNELS), normal(ROWS, units, seed=1)
    kernel = normal(CHANNELS, units, seed=2)
    a, dy, w = (each.numpy().astype("float64") for each in (x, upstream, kernel))
    by_matrix = a.T @ dy
    if transposed:
        kernel, by_matrix = tf.transpose(kernel), by_matrix.T
    compiled = tf.function(gradients, jit_compile=True)
    arguments = xla_kernels.matmul, x, kernel, upstream, transposed
    found = compiled(*arguments)
    for each, wanted in zip(found, (a @ w, dy @ w.T, by_matrix), strict=True):
        np.testing.assert_allclose(each, wanted, atol=2e-5)
    assert slow_products(compiled, *arguments) == 0
    assert (
        slow_products(compiled, small_batch_matmul.matmul.reference, *arguments[1:])
        == 1
    )


def test_outside_xla_a_product_is_the_formula():
    x, table = normal(ROWS, CHANNELS), normal(40, CHANNELS, seed=1)
    found = xla_kernels.matmul(x, table, transposed=True)
    np.testing.assert_array_equal(
        found, small_batch_matmul.matmul.reference(x, table, True)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_are_those_of_the_formula(smoothing):
    logits, labels = 5 * normal(ROWS, 40), tf.range(ROWS)
    # The label's own probability is 0 in float32.
    logits = tf.tensor_scatter_nd_update(logits, [[3, 3]], [-200.0])
    upstream = normal(ROWS, seed=1)

    def computed(form, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = form(logits, labels, smoothing)
        return losses, tape.gradient(losses, logits, upstream)

    compiled = tf.function(computed, jit_compile=True)
    found = compiled(cross_entropy.smoothed_cross_entropy, logits)
    wide = tf.cast(logits, tf.float64)
    upstream = tf.cast(upstream, tf.float64)
    expected = computed(label_smoothing.smoothed_cross_entropy.reference, wide)
    for each, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-6, atol=2e-5)


def test_numbers_are_uniform_and_a_function_of_the_seed():
    count = 100_000

    @tf.function(jit_compile=True)
    def drawn(seed):
        return xla_kernels.uniform((count,), seed)

    one, same, other = (
        drawn(tf.constant(seed)).numpy() for seed in ([1, 2], [1, 2], [2, 2])
    )
    np.testing.assert_array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / count**0.5
    assert one.min() >= 0 and one.max() < 1
    # Each tenth has its share, within four deviations.
    shares = np.histogram(one, 10, (0, 1))[0] / count
    np.testing.assert_allclose(shares, 0.1, atol=4 * (0.1 * 0.9 / count) ** 0.5)


def test_outside_xla_numbers_are_those_of_the_formula():
    seed = tf.constant([1, 2])
    found = xla_kernels.uniform((5,), seed)
    np.testing.assert_array_equal(found, seeded_dropout.uniform.reference((5,), seed))
