"""Encoder and decoder layers equal those of keras-nlp with the same weights."""

import keras
import keras_nlp
import numpy as np
import pytest

from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer

BATCH, SOURCE, TARGET, D_MODEL, HEADS, D_FF = 2, 5, 4, 12, 3, 20
DEPTH = D_MODEL // HEADS
SIZES = {"num_heads": HEADS, "d_k": DEPTH, "d_v": DEPTH, "d_ff": D_FF}
LENGTHS = {"source": [5, 3], "target": [4, 2]}


def randomized(layer):
    """Assigns random values to every weight of a built layer."""
    rng = np.random.default_rng(1)
    for variable in layer.weights:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    return layer


def oracle(layer_class, norm):
    return layer_class(
        intermediate_dim=D_FF,
        num_heads=HEADS,
        activation="relu",
        layer_norm_epsilon=1e-6,
        normalize_first=norm == "pre",
    )


def copy_attention(ours, theirs):
    for projection, dense in (
        (ours.query, theirs._query_dense),
        (ours.key, theirs._key_dense),
        (ours.value, theirs._value_dense),
    ):
        kernel = projection.kernel.numpy().reshape(D_MODEL, HEADS, DEPTH)
        dense.kernel.assign(kernel)
    output = ours.output_projection.kernel.numpy()
    theirs._output_dense.kernel.assign(output.reshape(HEADS, DEPTH, D_MODEL))


def copy_feed_forward(ours, theirs):
    for mine, dense in (
        (ours.hidden, theirs._feedforward_intermediate_dense),
        (ours.output_projection, theirs._feedforward_output_dense),
    ):
        dense.kernel.assign(mine.kernel.numpy())
        dense.bias.assign(mine.bias.numpy())


def copy_norm(residual, theirs):
    theirs.gamma.assign(residual.layer_norm.scale.numpy())
    theirs.beta.assign(residual.layer_norm.bias.numpy())


def tokens(side, length):
    """Returns int32 (batch, length) ids, padded according to `LENGTHS`."""
    return np.array([[7] * n + [0] * (length - n) for n in LENGTHS[side]], "int32")


def vectors(length, seed):
    return (
        np.random.default_rng(seed).normal(size=(BATCH, length, D_MODEL)).astype("f4")
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_layer_equals_that_of_keras_nlp(norm):
    ours = EncoderLayer(**SIZES, norm=norm)
    ours.build((BATCH, SOURCE, D_MODEL))
    randomized(ours)
    x, ids = vectors(SOURCE, 2), tokens("source", SOURCE)
    theirs = oracle(keras_nlp.layers.TransformerEncoder, norm)
    theirs.build(x.shape)
    copy_attention(ours.self_attention, theirs._self_attention_layer)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norm(ours.self_attention_residual, theirs._self_attention_layer_norm)
    copy_norm(ours.feed_forward_residual, theirs._feedforward_layer_norm)
    expected = theirs(x, padding_mask=ids != 0)
    output = ours(x, attention_mask=padding_mask(ids))
    real = ids != 0
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(output)[real],
        keras.ops.convert_to_numpy(expected)[real],
        atol=1e-5,
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_layer_equals_that_of_keras_nlp(norm):
    ours = DecoderLayer(**SIZES, norm=norm)
    ours.build((BATCH, TARGET, D_MODEL), (BATCH, SOURCE, D_MODEL))
    randomized(ours)
    x, memory = vectors(TARGET, 3), vectors(SOURCE, 4)
    ids = tokens("source", SOURCE)
    theirs = oracle(keras_nlp.layers.TransformerDecoder, norm)
    theirs.build(x.shape, memory.shape)
    copy_attention(ours.self_attention, theirs._self_attention_layer)
    copy_attention(ours.cross_attention, theirs._cross_attention_layer)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norm(ours.self_attention_residual, theirs._self_attention_layer_norm)
    copy_norm(ours.cross_attention_residual, theirs._cross_attention_layer_norm)
    copy_norm(ours.feed_forward_residual, theirs._feedforward_layer_norm)
    expected = theirs(x, memory, encoder_padding_mask=ids != 0)
    output = ours(x, memory, cross_attention_mask=padding_mask(ids))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(output),
        keras.ops.convert_to_numpy(expected),
        atol=1e-5,
    )
