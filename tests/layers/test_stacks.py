"""Encoder and decoder layers, put together again from Keras' own layers."""

from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.masks import causal_bias, padding_bias
from t2t_repro.layers.rows import rows_of, sentences_of
from t2t_repro.layers.stacks import DecoderLayer, EncoderLayer, Stack, StackShape
from t2t_repro.layers.sublayer import Residual
from t2t_repro.models.precision import mixed_precision

IDS = np.array([[5, 6, 7, 1], [8, 1, 0, 0]])
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


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def shape(norm, layers=1, dropout=0.0):
    return StackShape(layers, 12, 20, 2, 4, 5, norm, dropout)


def filled(layer):
    """Builds a layer and gives every variable values that none of its kind has."""
    layer.build()
    for seed, variable in enumerate(layer.weights):
        variable.assign(0.5 * random(*variable.shape, seed=seed))
    return layer


def keras_norm(ours, x):
    """Normalises by Keras' layer with the weights of ours."""
    theirs = keras.layers.LayerNormalization(epsilon=1e-6)
    theirs.build(x.shape)
    theirs.set_weights([ours.scale.numpy(), ours.bias.numpy()])
    return theirs(x)


def keras_attention(ours, x, memory, mask):
    """Attends by Keras' layer with the weights of ours."""
    theirs = keras.layers.MultiHeadAttention(
        ours.num_heads, ours.d_k, ours.d_v, use_bias=False, output_shape=ours.d_model
    )
    theirs.build(x.shape, memory.shape, memory.shape)
    parts = (ours.query, ours.key, ours.value, ours.output_projection)
    kernels = {w.path.split("/")[-2]: w for w in theirs.weights}
    names = ("query", "key", "value", "attention_output")
    for name, part in zip(names, parts, strict=True):
        kernels[name].assign(part.kernel.numpy().reshape(kernels[name].shape))
    return theirs(x, memory, attention_mask=mask)


def keras_feed_forward(ours, x):
    """Applies two of Keras' Dense with the weights of ours."""
    for part, activation in ((ours.hidden, "relu"), (ours.output_projection, None)):
        theirs = keras.layers.Dense(part.units, activation)
        theirs.build(x.shape)
        theirs.set_weights([part.kernel.numpy(), part.bias.numpy()])
        x = theirs(x)
    return x


def applied(layer, x, *context):
    """Applies a layer or stack to sentences, (batch, length, d_model)."""
    shapes = {"shape": x.shape[:2]}
    if len(context) == 3:
        memory, *biases = context
        shapes["memory_shape"] = memory.shape[:2]
        context = rows_of(memory), *biases
    return sentences_of(layer(rows_of(x), *context, **shapes), x.shape[:2])


def joined(residual, x, sublayer):
    """The two formulas of section 3.1 and of tensor2tensor, without dropout."""
    if residual.norm == "post":
        return keras_norm(residual.layer_norm, x + sublayer(x))
    return x + sublayer(keras_norm(residual.layer_norm, x))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_layer_is_that_of_keras_parts(norm):
    layer = filled(EncoderLayer(shape(norm)))
    x, mask = random(2, 4, 12), (IDS != 0)[:, None, :]
    expected = joined(
        layer.self_attention_residual,
        x,
        lambda y: keras_attention(layer.self_attention, y, y, mask),
    )
    expected = joined(
        layer.feed_forward_residual,
        expected,
        lambda y: keras_feed_forward(layer.feed_forward, y),
    )
    np.testing.assert_allclose(
        applied(layer, x, padding_bias(IDS)), expected, atol=2e-5
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_decoder_layer_is_that_of_keras_parts(norm):
    layer = filled(DecoderLayer(shape(norm)))
    x, encoder_output = random(2, 3, 12), random(2, 4, 12, seed=1)
    causal = np.tril(np.ones((1, 3, 3), bool))
    sublayers = [
        (
            layer.self_attention_residual,
            lambda y: keras_attention(layer.self_attention, y, y, causal),
        ),
        (
            layer.cross_attention_residual,
            lambda y: keras_attention(
                layer.cross_attention, y, encoder_output, (IDS != 0)[:, None, :]
            ),
        ),
        (
            layer.feed_forward_residual,
            lambda y: keras_feed_forward(layer.feed_forward, y),
        ),
    ]
    expected = x
    for residual, sublayer in sublayers:
        expected = joined(residual, expected, sublayer)
    ours = applied(layer, x, encoder_output, causal_bias(3), padding_bias(IDS))
    np.testing.assert_allclose(ours, expected, atol=2e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_only_pre_norm_normalises_once_more_after_the_last_layer(norm):
    stack = filled(Stack(EncoderLayer, shape(norm, layers=2)))
    x, bias = random(2, 4, 12), padding_bias(IDS)
    expected = applied(stack.layer_1, applied(stack.layer_0, x, bias), bias)
    if norm == "pre":
        expected = keras_norm(stack.final_norm, expected)
    np.testing.assert_allclose(applied(stack, x, bias), expected, atol=2e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer])
def test_every_variable_of_every_layer_is_found_by_name(layer_class, norm):
    """A Python list of layers would hide them from TensorFlow's checkpoints."""
    stack = Stack(layer_class, shape(norm, layers=3), name="stack")
    stack.build()
    sublayers = ENCODER if layer_class is EncoderLayer else DECODER
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


def test_padding_of_the_source_never_reaches_another_position():
    encoder = filled(Stack(EncoderLayer, shape("pre", layers=2)))
    decoder = filled(Stack(DecoderLayer, shape("pre", layers=2)))
    x, y = random(2, 4, 12), random(2, 3, 12, seed=1)
    other = np.where(IDS[..., None] == 0, 10 * random(2, 4, 12, seed=2), x)
    bias = padding_bias(IDS)
    one, two = applied(encoder, x, bias), applied(encoder, other, bias)
    symbols = IDS != 0
    np.testing.assert_array_equal(np.array(one)[symbols], np.array(two)[symbols])
    np.testing.assert_array_equal(
        applied(decoder, y, one, causal_bias(3), bias),
        applied(decoder, y, two, causal_bias(3), bias),
    )


def test_a_later_target_never_reaches_an_earlier_position():
    decoder = filled(Stack(DecoderLayer, shape("post", layers=2)))
    y, encoder_output = random(2, 5, 12), random(2, 4, 12, seed=1)
    other = y.copy()
    other[:, 3:] = random(2, 2, 12, seed=2)
    one, two = (
        np.array(applied(decoder, x, encoder_output, causal_bias(5), padding_bias(IDS)))
        for x in (y, other)
    )
    np.testing.assert_array_equal(one[:, :3], two[:, :3])
    assert np.abs(one[:, 3:] - two[:, 3:]).max() > 1e-3


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_touches_the_sublayer_and_not_the_residual(norm):
    residual = Residual(400, 0.5, norm)
    residual.build()
    x, y = np.full((1, 400), 3.0, "float32"), np.ones((1, 400), "float32")
    total = np.array(residual(x, y, tf.constant([1, 2])))
    if norm == "pre":
        np.testing.assert_array_equal(np.unique(total), [3, 5])
    else:
        # Whatever share was kept, normalisation leaves two values of mean 0.
        assert len(np.unique(total.round(4))) == 2
        assert total.mean() == pytest.approx(0, abs=1e-5)


def stacks_with_dropout(layers=2):
    """An encoder and a decoder that drop everywhere, in a model's scope."""
    sizes = replace(
        shape("post", layers, dropout=0.1), attention_dropout=0.1, ffn_dropout=0.1
    )
    encoder = filled(Stack(EncoderLayer, sizes, name="encoder"))
    return encoder, filled(Stack(DecoderLayer, sizes, name="decoder"))


def trained(stacks, x, y, seed):
    """Applies both stacks with dropout; returns the decoder's rows."""
    encoder, decoder = stacks
    bias, sizes = padding_bias(IDS), {"shape": (2, 4)}
    x = encoder(x, bias, seed=seed, **sizes)
    sizes = {"shape": (2, 3), "memory_shape": (2, 4)}
    return decoder(y, x, causal_bias(3), bias, seed=seed, **sizes)


def test_every_dropout_of_every_layer_draws_a_mask_of_its_own(monkeypatch):
    seeds = []
    uniform = keras.random.uniform

    def noted(*args, seed, **kwargs):
        seeds.append(tuple(np.array(seed.next())))
        return uniform(*args, seed=seed, **kwargs)

    monkeypatch.setattr(keras.random, "uniform", noted)
    x, y = random(8, 12), random(6, 12, seed=1)
    trained(stacks_with_dropout(layers=6), x, y, tf.constant([3, 4]))
    # Sub-layers' outputs, attention weights and hidden units.
    assert len(seeds) == 6 * (2 + 1 + 1) + 6 * (3 + 2 + 1) == len(set(seeds))
    assert {first for first, _ in seeds} == {3}


def test_a_graph_has_one_trace_of_all_layers_and_their_values_and_gradients():
    stacks = stacks_with_dropout(layers=3)
    variables = [v.value for stack in stacks for v in stack.variables]
    inputs = random(8, 12), random(6, 12, seed=1), tf.constant([3, 4])
    traces = []
    for stack in stacks:
        for layer in stack.layers_in_order():
            call = layer.call
            layer.call = lambda *args, call=call, layer=layer, **kwargs: (
                traces.append(layer.path),
                call(*args, **kwargs),
            )[1]

    def value_and_gradients(*inputs):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(trained(stacks, *inputs) ** 2)
        return value, *tape.gradient(value, variables)

    expected = value_and_gradients(*inputs)
    assert traces == 3 * ["encoder/layer_0"] + 3 * ["decoder/layer_0"]
    traces.clear()
    found = tf.function(value_and_gradients, autograph=False)(*inputs)
    assert traces == ["encoder/layer_0", "decoder/layer_0"]
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_layers_compute_in_16_bits_and_read_weights_of_32():
    with mixed_precision("bfloat16"):
        stack = Stack(EncoderLayer, shape("post", layers=2))
    filled(stack)
    x, bias = tf.cast(random(8, 12), tf.bfloat16), padding_bias(IDS)
    found = stack(x, bias, seed=tf.constant([1, 2]), shape=(2, 4))
    assert found.dtype == tf.bfloat16
    assert {v.dtype for v in stack.variables} == {"float32"}
    for layer in stack.layers_in_order():
        x = layer(x, bias, shape=(2, 4))
    np.testing.assert_array_equal(tf.cast(found, "float32"), tf.cast(x, "float32"))
