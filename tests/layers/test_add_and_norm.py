"""Layer normalisation is its formula, and residuals are those of the paper."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.seeded_dropout import dropout_seed


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def built(channels, scale, bias):
    layer = LayerNormalization()
    layer.build((None, channels))
    layer.scale.assign(scale)
    layer.bias.assign(bias)
    return layer


def test_it_is_the_formula_in_float64():
    x, scale, bias = random(6, 8), random(8, seed=1), random(8, seed=2)
    x = 3 * x + 5
    wide = x.astype("float64")
    mean = wide.mean(axis=-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(axis=-1, keepdims=True)
    expected = (wide - mean) / np.sqrt(variance + 1e-6) * scale + bias
    np.testing.assert_allclose(built(8, scale, bias)(x), expected, atol=1e-5)


def test_it_equals_the_layer_of_keras():
    x, scale, bias = random(2, 5, 8), random(8, seed=1), random(8, seed=2)
    theirs = keras.layers.LayerNormalization(epsilon=1e-6)
    theirs.build(x.shape)
    theirs.set_weights([scale, bias])
    np.testing.assert_allclose(built(8, scale, bias)(x), theirs(x), atol=2e-6)


def test_its_epsilon_is_one_millionth():
    # Variance 1e-6 equals epsilon: the values come out as x / sqrt(2e-6).
    x = np.array([[1e-3, -1e-3]], "float32")
    normal = built(2, np.ones(2), np.zeros(2))(x)
    np.testing.assert_allclose(normal, [[0.5**0.5, -(0.5**0.5)]], rtol=1e-4)


def test_its_gradient_is_that_of_the_plain_formula_in_float64():
    x, scale, bias = 3 * random(20, 8) + 1, random(8, seed=1), random(8, seed=2)
    upstream = random(20, 8, seed=3)
    layer = built(8, scale, bias)
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        total = tf.reduce_sum(layer(given) * upstream)
    ours = tape.gradient(total, [given, layer.scale.value, layer.bias.value])

    wide = [tf.constant(a, tf.float64) for a in (x, scale, bias)]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        centred = wide[0] - tf.reduce_mean(wide[0], -1, keepdims=True)
        variance = tf.reduce_mean(centred**2, -1, keepdims=True)
        normal = centred / tf.sqrt(variance + 1e-6)
        total = tf.reduce_sum((normal * wide[1] + wide[2]) * upstream)
    for mine, expected in zip(ours, tape.gradient(total, wide), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_half_precision_is_normalised_in_single():
    layer = LayerNormalization(dtype="mixed_bfloat16")
    layer.build((None, 4))
    # In bfloat16, 1000 + 1 is 1000: the sum of squares would be lost.
    x = tf.constant([[1000.0, 1008.0, 992.0, 1000.0]], tf.bfloat16)
    normal = layer(x)
    assert normal.dtype == tf.bfloat16
    expected = np.array([0, 1, -1, 0]) * 2**0.5
    np.testing.assert_allclose(tf.cast(normal, tf.float32)[0], expected, atol=0.01)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_residual_is_the_formula_of_its_kind(norm):
    x = random(2, 3, 8)
    residual = Residual(norm=norm)
    found = residual(x, sublayer=lambda y: y**2)
    normalize = residual.layer_norm
    expected = normalize(x + x**2) if norm == "post" else x + normalize(x) ** 2
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_another_norm_is_refused():
    with pytest.raises(ValueError, match='norm \'prenorm\': use "post" or "pre"'):
        Residual(norm="prenorm")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_touches_the_sublayer_and_not_the_residual(norm):
    residual = Residual(0.5, norm)
    x, y = np.full((1, 400), 3.0, "float32"), np.ones((1, 400), "float32")
    with dropout_seed(tf.constant([1, 2])):
        total = np.array(residual(x, sublayer=lambda _: y, training=True))
    if norm == "pre":
        np.testing.assert_array_equal(np.unique(total), [3, 5])
    else:
        # Whatever share was kept, normalisation leaves two values of mean 0.
        assert len(np.unique(total.round(4))) == 2
        assert total.mean() == pytest.approx(0, abs=1e-5)
