"""The plain formulas agree with the same arithmetic in float64."""

import keras
import numpy as np
import pytest

from t2t_repro.layers.functional import apply_layers, linear, normalize, tied_logits
from t2t_repro.layers.label_smoothing import (
    entropy_of_smoothing,
    smoothed_cross_entropy,
)
from tests.sixteen_bits import needs


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def wide(*arrays):
    return [each.astype("float64") for each in arrays]


def test_a_product_is_a_matrix_product_of_each_position():
    x, kernel, bias = random(2, 3, 5), random(5, 4, seed=1), random(4, seed=2)
    by_hand = np.einsum("btc,cu->btu", *wide(x, kernel))
    np.testing.assert_allclose(linear(x, kernel), by_hand, atol=2e-6)
    np.testing.assert_allclose(linear(x, kernel, bias), by_hand + bias, atol=2e-6)


def test_a_product_with_a_table_is_one_with_every_row():
    x, table = random(2, 3, 5), random(7, 5, seed=1)
    by_hand = np.einsum("btc,vc->btv", *wide(x, table))
    np.testing.assert_allclose(tied_logits(x, table), by_hand, atol=2e-6)


@needs("bfloat16")
def test_a_table_of_32_bits_is_read_in_the_type_of_16():
    # bfloat16 has 8 significant bits: rounding takes 2^-9 off each entry again.
    x = np.array([[1, 2, -3]])
    whole = np.array([[2, 4, 3], [5, 2, 3], [-4, 3, 2]])
    table = (whole + 2**-9 * np.sign(x)).astype("float32")
    found = tied_logits(keras.ops.cast(x, "bfloat16"), table)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    # By hand. A processor's order and precision of accumulation bound the error by
    # gamma_n sum |x_i w_i| (Higham 2002, Accuracy and Stability of Numerical
    # Algorithms, section 3.1). The result is rounded to nearest, or truncated where
    # TensorFlow multiplies in float32 (processors without AVX-512), which adds a
    # relative error of 2^-8 or 2^-7. Here the error is zero: each product and partial
    # sum is a whole number of at most 2^8, which bfloat16 represents exactly.
    # An unrounded table would add 6 * 2^-9 to each result. Rounded or truncated, that
    # is another number: the spacing is 4 * 2^-9 above 1 and 8 * 2^-9 below 4.
    expected = [[2 + 8 - 9, 5 + 4 - 9, -4 + 6 - 6]]
    np.testing.assert_array_equal(keras.ops.cast(found, "float32"), expected)


def test_a_normalised_position_has_the_mean_and_deviation_asked_for():
    x, scale, bias = 3 * random(2, 4, 8) + 5, random(8, seed=1), random(8, seed=2)
    x64, scale64, bias64 = wide(x, scale, bias)
    mean = x64.mean(axis=-1, keepdims=True)
    variance = ((x64 - mean) ** 2).mean(axis=-1, keepdims=True)
    by_hand = (x64 - mean) / np.sqrt(variance + 1e-6) * scale64 + bias64
    np.testing.assert_allclose(normalize(x, scale, bias, 1e-6), by_hand, atol=5e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_a_smoothed_loss_is_the_divergence_from_the_smoothed_distribution(smoothing):
    logits, targets = 3 * random(2, 3, 9), np.array([[0, 8, 3], [3, 5, 0]], "int32")
    soft = np.full((2, 3, 9), smoothing / 8)
    np.put_along_axis(soft, targets[..., None], 1 - smoothing, axis=-1)
    (logits64,) = wide(logits)
    log_probs = logits64 - np.log(np.exp(logits64).sum(axis=-1, keepdims=True))
    ratio = np.log(np.where(soft > 0, soft, 1)) - log_probs
    found = smoothed_cross_entropy(logits, targets, smoothing)
    np.testing.assert_allclose(found, (soft * ratio).sum(axis=-1), atol=2e-6)


def test_the_entropy_of_smoothing_by_hand():
    # 0.8 once and 0.1 twice.
    by_hand = -(0.8 * np.log(0.8) + 2 * 0.1 * np.log(0.1))
    assert entropy_of_smoothing(0.2, 3) == pytest.approx(by_hand, rel=1e-12)
    assert entropy_of_smoothing(0.0, 3) == 0


def test_layers_are_applied_in_the_order_they_are_given():
    class Shifted(keras.layers.Layer):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def call(self, x, shift):
            return x * self.factor + shift

    found = apply_layers([Shifted(2), Shifted(3)], np.float32([1, 2]), shift=1.0)
    np.testing.assert_array_equal(found, [(1 * 2 + 1) * 3 + 1, (2 * 2 + 1) * 3 + 1])
