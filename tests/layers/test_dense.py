"""The linear projection is a matmul with an optional bias."""

import numpy as np

from t2t_repro.layers.dense import Dense


def test_computes_a_matmul_and_adds_the_bias():
    layer = Dense(3, use_bias=True)
    layer.build((None, 5))
    layer.bias.assign([1.0, 2.0, 3.0])
    x = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    expected = x @ layer.kernel.numpy() + np.array([1, 2, 3])
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_has_only_a_kernel_without_a_bias():
    layer = Dense(3)
    layer.build((None, None, 5))
    assert [tuple(v.shape) for v in layer.weights] == [(5, 3)]
    assert layer.bias is None


def test_initial_kernels_are_uniform_within_glorots_limit():
    layer = Dense(40)
    layer.build((None, 60))
    kernel, limit = layer.kernel.numpy(), (6 / (40 + 60)) ** 0.5
    assert 0.99 * limit < np.abs(kernel).max() <= limit
