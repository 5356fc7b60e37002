"""Encoder and decoder apply their layers in order, each with its own variables."""

import zlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.layers.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer
from tests.arrays import random

IDS = np.array([[5, 6, 7, 1], [8, 1, 0, 0]])
SIZES = {"num_heads": 2, "d_k": 4, "d_v": 5, "d_ff": 20}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.1}
D_MODEL = 12
ATTENTION = ("query/kernel", "key/kernel", "value/kernel", "output/kernel")
FEED_FORWARD = ("hidden/kernel", "hidden/bias", "output/kernel", "output/bias")
NORM = ("layer_norm/scale", "layer_norm/bias")
ENCODER = {
    "self_attention": ATTENTION,
    "self_attention_residual": NORM,
    "feed_forward": FEED_FORWARD,
    "feed_forward_residual": NORM,
}
DECODER = ENCODER | {"cross_attention": ATTENTION, "cross_attention_residual": NORM}


def filled(layer):
    """Builds a layer and assigns different random values to each variable."""
    shape = (None, None, D_MODEL)
    layer.build(*[shape] * (2 if isinstance(layer, Decoder | DecoderLayer) else 1))
    for seed, variable in enumerate(layer.trainable_weights):
        variable.assign(0.5 * random(*variable.shape, seed=seed))
    return layer


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_only_pre_norm_normalizes_after_the_last_layer(norm):
    encoder = filled(Encoder(2, norm, **SIZES))
    x, mask = random(2, 4, D_MODEL), padding_mask(IDS)
    expected = x
    for layer in (encoder.layer_0, encoder.layer_1):
        expected = layer(expected, attention_mask=mask)
    if norm == "pre":
        expected = encoder.final_norm(expected)
    np.testing.assert_allclose(encoder(x, attention_mask=mask), expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("stack_class", [Encoder, Decoder])
def test_every_variable_of_every_layer_has_its_path(stack_class, norm):
    """TensorFlow's checkpoints would not find layers in a Python list."""
    stack = filled(stack_class(3, norm, **SIZES, name="stack"))
    sublayers = ENCODER if stack_class is Encoder else DECODER
    expected = {
        f"stack/layer_{index}/{sublayer}/{name}"
        for index in range(3)
        for sublayer, names in sublayers.items()
        for name in names
    }
    if norm == "pre":
        expected |= {"stack/final_norm/scale", "stack/final_norm/bias"}
    assert sorted(v.path for v in stack.weights) == sorted(expected)
    tracked = tf.train.Checkpoint(stack=stack)
    assert len(tf.nest.flatten(tracked.stack.trainable_variables)) == len(expected)


def stacks_with_dropout(layers=2):
    """Creates an encoder and a decoder with all kinds of dropout."""
    encoder = filled(Encoder(layers, **SIZES, **DROPOUT, name="encoder"))
    return encoder, filled(Decoder(layers, **SIZES, **DROPOUT, name="decoder"))


def trained(stacks, x, y, seed):
    """Applies both stacks with dropout; returns the decoder's output."""
    encoder, decoder = stacks
    mask = padding_mask(IDS)
    with dropout_seed(seed):
        x = encoder(x, attention_mask=mask, training=True)
        return decoder(y, x, cross_attention_mask=mask, training=True)


def checksum(path):
    return zlib.crc32(path.encode()) & 0x7FFFFFFF


def test_every_dropout_of_every_layer_draws_its_own_mask(monkeypatch):
    seeds = []
    uniform = keras.random.uniform

    def recorded(*args, seed, **kwargs):
        seeds.append(tuple(np.array(seed.next())))
        return uniform(*args, seed=seed, **kwargs)

    monkeypatch.setattr(keras.random, "uniform", recorded)
    x, y = random(2, 4, D_MODEL), random(2, 3, D_MODEL, seed=1)
    trained(stacks_with_dropout(layers=6), x, y, tf.constant([3, 4]))
    # Dropout of sub-layer outputs, attention weights and hidden units.
    assert len(seeds) == 6 * (2 + 1 + 1) + 6 * (3 + 2 + 1) == len(set(seeds))
    # A seed combines the checksum of a sub-layer's path in layer 0, which all layers of
    # the stack share, with the checksum of the layer's own path.
    expected = {
        (3, 4 ^ checksum(f"{stack}/layer_{i}") ^ checksum(f"{stack}/layer_0/{part}"))
        for stack, sublayers in (("encoder", ENCODER), ("decoder", DECODER))
        for i in range(6)
        for part in (f"{sublayer}/dropout" for sublayer in sublayers)
    }
    assert set(seeds) == expected


def test_rejects_an_unknown_self_attention():
    other = {"class_name": "no>Such", "config": {}}
    with pytest.raises(TypeError, match="Could not locate class 'no>Such'"):
        EncoderLayer(**SIZES, self_attention=other)


@pytest.mark.parametrize("stack", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_rejects_an_unknown_argument_by_name(stack):
    layers = {"num_layers": 1} if stack in (Encoder, Decoder) else {}
    with pytest.raises(ValueError, match="self_atention"):
        stack(**layers, **SIZES, self_atention=None)
