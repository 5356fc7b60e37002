"""Layer normalization and residual connections equal their formulas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.seeded_dropout import dropout_seed
from tests.arrays import random


def built(channels, scale, bias):
    layer = LayerNormalization()
    layer.build((None, channels))
    layer.scale.assign(scale)
    layer.bias.assign(bias)
    return layer


def test_layer_norm_equals_the_keras_layer():
    x, scale, bias = random(2, 5, 8), random(8, seed=1), random(8, seed=2)
    theirs = keras.layers.LayerNormalization(epsilon=1e-6)
    theirs.build(x.shape)
    theirs.set_weights([scale, bias])
    np.testing.assert_allclose(built(8, scale, bias)(x), theirs(x), atol=2e-6)


def test_default_epsilon_is_one_millionth():
    # The variance, 1e-6, equals epsilon, so the output is x / sqrt(2e-6).
    x = np.array([[1e-3, -1e-3]], "float32")
    normal = built(2, np.ones(2), np.zeros(2))(x)
    np.testing.assert_allclose(normal, [[0.5**0.5, -(0.5**0.5)]], rtol=1e-4)


def test_gradient_equals_that_of_the_formula_in_float64():
    x, scale, bias = 3 * random(20, 8) + 1, random(8, seed=1), random(8, seed=2)
    upstream = random(20, 8, seed=3)
    layer = built(8, scale, bias)
    inputs = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(layer(inputs) * upstream)
    ours = tape.gradient(total, [inputs, layer.scale.value, layer.bias.value])

    wide = [tf.constant(a, tf.float64) for a in (x, scale, bias)]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        centred = wide[0] - tf.reduce_mean(wide[0], -1, keepdims=True)
        variance = tf.reduce_mean(centred**2, -1, keepdims=True)
        normal = centred / tf.sqrt(variance + 1e-6)
        total = tf.reduce_sum((normal * wide[1] + wide[2]) * upstream)
    for mine, expected in zip(ours, tape.gradient(total, wide), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_bfloat16_is_normalized_in_float32():
    layer = LayerNormalization(dtype="mixed_bfloat16")
    layer.build((None, 4))
    # In bfloat16, 1000 + 1 is 1000, so the variance would be wrong.
    x = tf.constant([[1000.0, 1008.0, 992.0, 1000.0]], tf.bfloat16)
    normal = layer(x)
    assert normal.dtype == tf.bfloat16
    expected = np.array([0, 1, -1, 0]) * 2**0.5
    np.testing.assert_allclose(tf.cast(normal, tf.float32)[0], expected, atol=0.01)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual_equals_the_formula_of_its_norm(norm):
    x = random(2, 3, 8)
    residual = Residual(norm=norm)
    output = residual(x, sublayer=lambda y: y**2)
    normalize = residual.layer_norm
    expected = normalize(x + x**2) if norm == "post" else x + normalize(x) ** 2
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_rejects_an_unknown_norm():
    with pytest.raises(ValueError, match='norm \'prenorm\': use "post" or "pre"'):
        Residual(norm="prenorm")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_applies_to_the_sublayer_but_not_to_the_residual(norm):
    residual = Residual(0.5, norm)
    x, y = np.full((1, 400), 3.0, "float32"), np.ones((1, 400), "float32")
    with dropout_seed(tf.constant([1, 2])):
        total = np.array(residual(x, sublayer=lambda _: y, training=True))
    if norm == "pre":
        np.testing.assert_array_equal(np.unique(total), [3, 5])
    else:
        # Normalization leaves two values with mean 0 for any dropout mask.
        assert len(np.unique(total.round(4))) == 2
        assert total.mean() == pytest.approx(0, abs=1e-5)
