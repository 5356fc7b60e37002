"""A shared trace of a stack's layers equals separate calls of the layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.layers.stacks import Decoder, Encoder
from tests.arrays import random

IDS = np.array([[5, 6, 7, 1], [8, 1, 0, 0]])
SIZES = {"num_heads": 2, "d_k": 4, "d_v": 5, "d_ff": 20}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.1}
D_MODEL = 12
NUM_LAYERS = 2


INPUTS = random(2, 4, D_MODEL), random(2, 3, D_MODEL, seed=1), tf.constant([3, 4])


@pytest.fixture(params=["post", "pre"])
def stacks(request):
    """Returns an encoder and a decoder with random weights and all kinds of dropout."""
    shape, sizes = (None, None, D_MODEL), SIZES | DROPOUT | {"norm": request.param}
    stacks = (
        Encoder(NUM_LAYERS, **sizes, name="encoder"),
        Decoder(NUM_LAYERS, **sizes, name="decoder"),
    )
    for stack, shapes in zip(stacks, ([shape], [shape, shape]), strict=True):
        stack.build(*shapes)
        for seed, variable in enumerate(stack.trainable_variables):
            variable.assign(0.5 * random(*variable.shape, seed=seed))
    return stacks


def apply_stacks(stacks, x, y, seed, training=True):
    encoder, decoder = stacks
    mask = padding_mask(IDS)
    with dropout_seed(seed):
        x = encoder(x, attention_mask=mask, training=training)
        return decoder(y, x, cross_attention_mask=mask, training=training)


def record_calls(stacks):
    """Returns a list to which each layer adds its path when it is called."""
    calls = []
    for stack in stacks:
        for layer in stack.layers_in_order():
            apply_sublayers = layer.apply_sublayers
            layer.apply_sublayers = (
                lambda *args, apply_sublayers=apply_sublayers, layer=layer: (
                    calls.append(layer.path),
                    apply_sublayers(*args),
                )[1]
            )
    return calls


def test_graph_traces_one_layer_and_equals_separate_calls(stacks):
    variables = [v.value for stack in stacks for v in stack.trainable_variables]
    calls = record_calls(stacks)

    def value_and_gradients(*inputs):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(apply_stacks(stacks, *inputs) ** 2)
        return value, *tape.gradient(value, variables)

    expected = value_and_gradients(*INPUTS)
    paths = [
        f"{s}/layer_{i}" for s in ("encoder", "decoder") for i in range(NUM_LAYERS)
    ]
    assert calls == paths
    calls.clear()
    fast.install()
    result = tf.function(value_and_gradients, autograph=False)(*INPUTS)
    assert calls == ["encoder/layer_0", "decoder/layer_0"]
    for one, other in zip(expected, result, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.medium
@pytest.mark.parametrize("stacks", ["post"], indirect=True)
def test_order_by_position_equals_separate_calls(stacks):
    variables = [v.value for stack in stacks for v in stack.trainable_variables]

    def value_and_gradients(*inputs):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(apply_stacks(stacks, *inputs, training=False) ** 2)
        return value, *tape.gradient(value, variables)

    expected = value_and_gradients(*INPUTS)
    fast.install("GPU")
    compiled = tf.function(value_and_gradients, jit_compile=True, autograph=False)
    for one, other in zip(expected, compiled(*INPUTS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_dropout_masks_equal_those_of_separate_calls(stacks):
    # A different mask changes some outputs by more than 0.1.
    separate = apply_stacks(stacks, *INPUTS)
    assert np.abs(separate - apply_stacks(stacks, *INPUTS, training=False)).max() > 0.1
    fast.install()
    traced = tf.function(lambda *inputs: apply_stacks(stacks, *inputs), autograph=False)
    np.testing.assert_allclose(traced(*INPUTS), separate, atol=1e-5)


def test_layers_without_a_dropout_seed_are_called_separately(stacks):
    encoder, _ = stacks
    calls = record_calls([encoder])
    fast.install()
    tf.function(lambda x: encoder(x, training=True), autograph=False)(INPUTS[0])
    assert calls == [f"encoder/layer_{index}" for index in range(NUM_LAYERS)]


def test_layers_with_a_keras_mask_are_called_separately(stacks):
    encoder, _ = stacks
    calls = record_calls([encoder])
    fast.install()

    @tf.function(autograph=False)
    def encoded(x):
        x = tf.identity(x)
        x._keras_mask = tf.constant(IDS != 0)
        return encoder(x)

    result = encoded(INPUTS[0])
    assert calls == [f"encoder/layer_{index}" for index in range(NUM_LAYERS)]
    expected = encoder(INPUTS[0], attention_mask=padding_mask(IDS))
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_a_stack_can_be_called_symbolically(stacks):
    encoder, _ = stacks
    fast.install()
    inputs = keras.Input((None, D_MODEL))
    model = keras.Model(inputs, encoder(inputs))
    np.testing.assert_allclose(model(INPUTS[0]), encoder(INPUTS[0]), atol=1e-5)
