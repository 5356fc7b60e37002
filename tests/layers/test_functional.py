"""Reference implementations equal the same arithmetic in float64."""

import keras
import numpy as np
import pytest

from t2t_repro.layers.functional import apply_layers, linear, normalize, tied_logits
from t2t_repro.layers.label_smoothing import (
    entropy_of_smoothing,
)
from tests.arrays import random
from tests.sixteen_bits import needs


def wide(*arrays):
    return [each.astype("float64") for each in arrays]


def test_linear_multiplies_every_position_by_the_kernel():
    x, kernel, bias = random(2, 3, 5), random(5, 4, seed=1), random(4, seed=2)
    by_hand = np.einsum("btc,cu->btu", *wide(x, kernel))
    np.testing.assert_allclose(linear(x, kernel), by_hand, atol=2e-6)
    np.testing.assert_allclose(linear(x, kernel, bias), by_hand + bias, atol=2e-6)


def test_tied_logits_multiply_by_every_row_of_the_table():
    x, table = random(2, 3, 5), random(7, 5, seed=1)
    by_hand = np.einsum("btc,vc->btv", *wide(x, table))
    np.testing.assert_allclose(tied_logits(x, table), by_hand, atol=2e-6)


@needs("bfloat16")
def test_a_float32_table_is_rounded_to_bfloat16_inputs():
    # bfloat16 has 8 significant bits, so rounding removes the 2^-9 of each entry.
    x = np.array([[1, 2, -3]])
    integers = np.array([[2, 4, 3], [5, 2, 3], [-4, 3, 2]])
    table = (integers + 2**-9 * np.sign(x)).astype("float32")
    output = tied_logits(keras.ops.cast(x, "bfloat16"), table)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    # The expected values are computed by hand. Order and precision of accumulation
    # depend on the processor and bound the error by gamma_n sum |x_i w_i| (Higham 2002,
    # Accuracy and Stability of Numerical Algorithms, section 3.1). Rounding the result
    # to nearest adds a relative error of 2^-8; truncating it, as processors without
    # AVX-512 do, adds 2^-7. Here the error is zero: each product and partial sum is an
    # integer of at most 2^8, which bfloat16 represents exactly.
    # An unrounded table would add 6 * 2^-9 to each result. Even rounded or truncated,
    # the result would differ: the spacing is 4 * 2^-9 above 1 and 8 * 2^-9 below 4.
    expected = [[2 + 8 - 9, 5 + 4 - 9, -4 + 6 - 6]]
    np.testing.assert_array_equal(keras.ops.cast(output, "float32"), expected)


def test_normalize_equals_the_formula_in_float64():
    x, scale, bias = 3 * random(2, 4, 8) + 5, random(8, seed=1), random(8, seed=2)
    x64, scale64, bias64 = wide(x, scale, bias)
    mean = x64.mean(axis=-1, keepdims=True)
    variance = ((x64 - mean) ** 2).mean(axis=-1, keepdims=True)
    by_hand = (x64 - mean) / np.sqrt(variance + 1e-6) * scale64 + bias64
    np.testing.assert_allclose(normalize(x, scale, bias, 1e-6), by_hand, atol=5e-6)


def test_entropy_of_smoothing_equals_arithmetic_by_hand():
    # One probability of 0.8 and two of 0.1.
    by_hand = -(0.8 * np.log(0.8) + 2 * 0.1 * np.log(0.1))
    assert entropy_of_smoothing(0.2, 3) == pytest.approx(by_hand, rel=1e-12)
    assert entropy_of_smoothing(0.0, 3) == 0


def test_layers_are_applied_in_order():
    class Shifted(keras.layers.Layer):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def call(self, x, shift):
            return x * self.factor + shift

    output = apply_layers([Shifted(2), Shifted(3)], np.float32([1, 2]), np.float32(1))
    np.testing.assert_array_equal(output, [(1 * 2 + 1) * 3 + 1, (2 * 2 + 1) * 3 + 1])
