"""The feed-forward network is equation (2) of the paper."""

import numpy as np

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.feed_forward import FeedForward


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_it_is_equation_2_at_every_position():
    layer = FeedForward(d_model=6, d_ff=10)
    layer.build()
    parts = {v.path.split("/", 1)[1]: v for v in layer.weights}
    values = {}
    for seed, (name, variable) in enumerate(sorted(parts.items())):
        values[name] = random(*variable.shape, seed=seed)
        variable.assign(values[name])
    x = random(5, 6, seed=9)
    hidden = np.maximum(0, x @ values["hidden/kernel"] + values["hidden/bias"])
    expected = hidden @ values["output/kernel"] + values["output/bias"]
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_hidden_units_are_dropped_with_a_seed():
    layer = FeedForward(d_model=4, d_ff=8, dropout=0.5)
    layer.build()
    x = random(2, 4)
    dropped = layer(x, seed=np.array([1, 2]))
    assert np.abs(np.array(layer(x)) - np.array(dropped)).max() > 1e-3


def test_the_linear_map_is_a_product_and_a_bias():
    layer = Dense(3, use_bias=True)
    layer.build((None, 5))
    layer.bias.assign([1.0, 2.0, 3.0])
    x = random(4, 5)
    expected = x @ layer.kernel.numpy() + np.array([1, 2, 3])
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_kernels_start_uniform_within_glorots_limit():
    layer = Dense(40)
    layer.build((None, 60))
    kernel, limit = layer.kernel.numpy(), (6 / (40 + 60)) ** 0.5
    assert 0.99 * limit < np.abs(kernel).max() <= limit
