"""Explicit gradients of layer normalization equal automatic differentiation."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.normalization import normalize, normalize_by_reductions
from t2t_repro.layers import functional
from tests.arrays import random


def compiled(*arguments):
    return tf.function(normalize_by_reductions, jit_compile=True)(*arguments)


@pytest.mark.parametrize("form", [normalize, normalize_by_reductions, compiled])
@pytest.mark.parametrize(("shape", "epsilon"), [((20, 8), 1e-6), ((4, 5, 8), 0.1)])
def test_value_and_gradient_equal_the_reference_in_float64(shape, epsilon, form):
    x, scale, bias = 3 * random(*shape) + 1, random(8, seed=1), random(8, seed=2)
    upstream = random(*shape, seed=3)
    arguments = [tf.constant(each) for each in (x, scale, bias)]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        y = form(*arguments, epsilon)
        total = tf.reduce_sum(y * upstream)
    ours = tape.gradient(total, arguments)

    wide = [tf.constant(each, tf.float64) for each in (x, scale, bias)]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        expected = functional.normalize.reference(*wide, epsilon)
        total = tf.reduce_sum(expected * upstream)
    np.testing.assert_allclose(y, expected, atol=5e-6)
    for mine, other in zip(ours, tape.gradient(total, wide), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-5)
