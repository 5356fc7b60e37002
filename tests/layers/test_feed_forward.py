"""The feed-forward network equals equation (2) of the paper."""

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.seeded_dropout import dropout_seed
from tests.arrays import random


def test_equals_equation_2_at_every_position():
    layer = FeedForward(d_ff=10)
    layer.build((None, None, 6))
    parts = {v.path.split("/", 1)[1]: v for v in layer.weights}
    values = {}
    for seed, (name, variable) in enumerate(sorted(parts.items())):
        values[name] = random(*variable.shape, seed=seed)
        variable.assign(values[name])
    x = random(2, 5, 6, seed=9)
    hidden = np.maximum(0, x @ values["hidden/kernel"] + values["hidden/bias"])
    expected = hidden @ values["output/kernel"] + values["output/bias"]
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_drops_hidden_units_in_training():
    layer = FeedForward(d_ff=8, dropout=0.5)
    x = random(1, 2, 4)
    plain = np.array(layer(x))
    with dropout_seed(tf.constant([1, 2])):
        dropped = layer(x, training=True)
    assert np.abs(plain - np.array(dropped)).max() > 1e-3
    np.testing.assert_array_equal(plain, layer(x, training=False))


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda x: max(0.0, x)),
        ("swish", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
        ("gelu_sigmoid", lambda x: x / (1 + math.exp(-1.702 * x))),
    ],
)
def test_applies_the_activation_function_by_name(activation, formula):
    layer = FeedForward(3, activation=activation)
    layer.build((None, 3))
    for dense in (layer.hidden, layer.output_projection):
        dense.kernel.assign(np.eye(3, dtype="float32"))
    x = [-1.5, 0.25, 2.0]
    np.testing.assert_allclose(layer(tf.constant([x]))[0], list(map(formula, x)), 1e-5)


def test_rejects_an_unknown_activation():
    with pytest.raises(ValueError, match="activation function identifier: tanhh"):
        FeedForward(3, activation="tanhh")
