"""Dropout applies its rate, keeps the mean, and depends only on a given seed."""

import zlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.seeded_dropout import dropout_seed


def drop(layer, x, *seed):
    with dropout_seed(tf.constant(seed, tf.int32)):
        return np.array(layer(x, training=True))


def drop_by_keras(layer, x):
    return np.array(layer(x, training=True))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("seeded", [True, False])
def test_drops_the_given_rate_and_keeps_the_mean(rate, seeded):
    x = np.ones(200_000, "float32")
    layer = Dropout(rate, seed=1)
    dropped = drop(layer, x, 3, 4) if seeded else drop_by_keras(layer, x)
    # Four standard deviations of the dropped fraction of independent draws.
    tolerance = 4 * (rate * (1 - rate) / len(x)) ** 0.5
    assert (dropped == 0).mean() == pytest.approx(rate, abs=tolerance)
    assert dropped.mean() == pytest.approx(1, abs=tolerance / (1 - rate))
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_inputs_use_the_mask_of_float32(dtype):
    """Numbers drawn in bfloat16 would drop 13/128, which is outside the tolerance."""
    x = np.ones(1_000_000, "float32")
    wide, narrow = (Dropout(0.1, name="a", dtype=each) for each in ("float32", dtype))
    with dropout_seed(tf.constant([1, 2])):
        output = narrow(x, training=True)
    assert output.dtype == dtype
    output = tf.cast(output, tf.float32).numpy()
    np.testing.assert_array_equal(output == 0, drop(wide, x, 1, 2) == 0)
    assert (output == 0).mean() == pytest.approx(0.1, abs=0.0012)
    assert output.max() == pytest.approx(1 / 0.9, rel=2**-8)


def test_equal_seeds_and_names_draw_equal_masks():
    x = np.ones((50, 50), "float32")
    one, other = Dropout(0.5, name="a"), Dropout(0.5, name="a")
    np.testing.assert_array_equal(drop(one, x, 1, 2), drop(other, x, 1, 2))
    np.testing.assert_array_equal(drop(one, x, 1, 2), drop(one, x, 1, 2))


@pytest.mark.parametrize("seed", [(2, 2), (1, 3), (2**31 - 1, -(2**31))])
def test_different_seeds_draw_different_masks(seed):
    x = np.ones(10_000, "float32")
    layer = Dropout(0.5, name="a")
    same = drop(layer, x, 1, 2) == drop(layer, x, *seed)
    assert same.mean() == pytest.approx(0.5, abs=0.03)


def test_layers_with_different_names_draw_different_masks():
    x = np.ones(10_000, "float32")
    same = drop(Dropout(0.5, name="a"), x, 1, 2) == drop(
        Dropout(0.5, name="b"), x, 1, 2
    )
    assert same.mean() == pytest.approx(0.5, abs=0.03)


def test_masks_depend_on_the_seed_and_a_checksum_of_the_path():
    """A training run resumed with a newer version must draw the same masks."""
    salt = zlib.crc32(b"a/dropout") & 0x7FFFFFFF
    numbers = tf.random.stateless_uniform([1000], [3, 4 ^ salt])

    class Holder(keras.layers.Layer):
        def __init__(self):
            super().__init__(name="a")
            self.part = Dropout(0.3, name="dropout")

        def build(self, shape):
            self.part.build(shape)

        def call(self, x, training=None):
            return self.part(x, training=training)

    output = drop(Holder(), np.ones(1000, "float32"), 3, 4)
    np.testing.assert_array_equal(output != 0, numbers >= 0.3)


def test_each_half_of_a_batch_can_have_its_own_seed():
    """Inputs can be (sentences, positions, channels) or (all positions, channels)."""
    layer = Dropout(0.5, name="a")
    for shape in ((6, 5, 4), (30, 4)):
        output = drop(layer, np.ones(shape, "float32"), [1, 2], [3, 4])
        half = np.ones((shape[0] // 2, *shape[1:]), "float32")
        expected = [drop(layer, half, 1, 2), drop(layer, half, 3, 4)]
        np.testing.assert_array_equal(output, np.concatenate(expected))
        assert not np.array_equal(*expected)


def test_the_innermost_seed_applies_until_its_block_ends():
    x = np.ones(1000, "float32")
    layer = Dropout(0.5, name="a")
    inner, outer = drop(layer, x, 1, 2), drop(layer, x, 3, 4)
    with dropout_seed(tf.constant([3, 4])):
        np.testing.assert_array_equal(drop(layer, x, 1, 2), inner)
        np.testing.assert_array_equal(layer(x, training=True), outer)
    assert not np.array_equal(drop_by_keras(layer, x), outer)


def test_the_seed_can_be_an_argument_of_a_graph():
    x = np.ones(1000, "float32")
    layer = Dropout(0.5, name="a")

    @tf.function(autograph=False)
    def dropped(seed):
        with dropout_seed(seed):
            return layer(x, training=True)

    np.testing.assert_array_equal(dropped(tf.constant([1, 2])), drop(layer, x, 1, 2))
    np.testing.assert_array_equal(dropped(tf.constant([5, 6])), drop(layer, x, 5, 6))


def test_equals_the_keras_layer_without_a_given_seed():
    x = np.random.default_rng(0).normal(size=(30, 40)).astype("float32")
    ours, theirs = Dropout(0.3, seed=7), keras.layers.Dropout(0.3, seed=7)
    for _ in range(3):
        np.testing.assert_array_equal(
            ours(x, training=True), theirs(x, training=True), strict=True
        )


def test_drops_nothing_outside_training_or_at_rate_zero():
    x = np.arange(6.0, dtype="float32")
    with dropout_seed(tf.constant([1, 2])):
        np.testing.assert_array_equal(Dropout(0.5)(x), x)
        np.testing.assert_array_equal(Dropout(0.5)(x, training=False), x)
    np.testing.assert_array_equal(drop(Dropout(0.0), x, 1, 2), x)
    np.testing.assert_array_equal(drop_by_keras(Dropout(0.0), x), x)


def test_a_given_seed_does_not_advance_the_generator_of_keras():
    layer = Dropout(0.5)
    before = [v.numpy() for v in layer.variables]
    drop(layer, np.ones(3, "float32"), 1, 2)
    assert layer.trainable_variables == []
    np.testing.assert_array_equal([v.numpy() for v in layer.variables], before)
