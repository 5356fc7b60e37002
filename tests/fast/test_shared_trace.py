"""Layers of a stack that are traced as one compute what they compute one by one."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.layers.stacks import Decoder, Encoder

IDS = np.array([[5, 6, 7, 1], [8, 1, 0, 0]])
SIZES = {"num_heads": 2, "d_k": 4, "d_v": 5, "d_ff": 20}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.1, "ffn_dropout": 0.1}
D_MODEL = 12


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


INPUTS = random(2, 4, D_MODEL), random(2, 3, D_MODEL, seed=1), tf.constant([3, 4])


@pytest.fixture(params=["post", "pre"])
def stacks(request):
    """An encoder and a decoder that drop everywhere, of random weights."""
    shape, sizes = (None, None, D_MODEL), SIZES | DROPOUT | {"norm": request.param}
    found = Encoder(3, **sizes, name="encoder"), Decoder(3, **sizes, name="decoder")
    for stack, shapes in zip(found, ([shape], [shape, shape]), strict=True):
        stack.build(*shapes)
        for seed, variable in enumerate(stack.trainable_variables):
            variable.assign(0.5 * random(*variable.shape, seed=seed))
    return found


def applied(stacks, x, y, seed, training=True):
    encoder, decoder = stacks
    mask = padding_mask(IDS)
    with dropout_seed(seed):
        x = encoder(x, attention_mask=mask, training=training)
        return decoder(y, x, cross_attention_mask=mask, training=training)


def calls_of(stacks):
    """Returns a list to which each layer that is called adds its path."""
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


def test_a_graph_has_one_trace_of_all_layers_and_their_values_and_gradients(stacks):
    variables = [v.value for stack in stacks for v in stack.trainable_variables]
    calls = calls_of(stacks)

    def value_and_gradients(*inputs):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(applied(stacks, *inputs) ** 2)
        return value, *tape.gradient(value, variables)

    expected = value_and_gradients(*INPUTS)
    each = [f"{s}/layer_{i}" for s in ("encoder", "decoder") for i in range(3)]
    assert calls == each
    calls.clear()
    fast.install()
    found = tf.function(value_and_gradients, autograph=False)(*INPUTS)
    assert calls == ["encoder/layer_0", "decoder/layer_0"]
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_masks_of_dropout_are_those_of_layers_called_one_by_one(stacks):
    # A mask that differs moves some outputs by a tenth and more.
    one_by_one = applied(stacks, *INPUTS)
    assert np.abs(one_by_one - applied(stacks, *INPUTS, training=False)).max() > 0.1
    fast.install()
    traced = tf.function(lambda *inputs: applied(stacks, *inputs), autograph=False)
    np.testing.assert_allclose(traced(*INPUTS), one_by_one, atol=1e-5)


def test_layers_that_draw_numbers_of_their_own_are_called_one_by_one(stacks):
    encoder, _ = stacks
    calls = calls_of([encoder])
    fast.install()
    tf.function(lambda x: encoder(x, training=True), autograph=False)(INPUTS[0])
    assert calls == [f"encoder/layer_{index}" for index in range(3)]


def test_layers_whose_input_carries_a_mask_are_called_one_by_one(stacks):
    encoder, _ = stacks
    calls = calls_of([encoder])
    fast.install()

    @tf.function(autograph=False)
    def encoded(x):
        x = tf.identity(x)
        x._keras_mask = tf.constant(IDS != 0)
        return encoder(x)

    found = encoded(INPUTS[0])
    assert calls == [f"encoder/layer_{index}" for index in range(3)]
    expected = encoder(INPUTS[0], attention_mask=padding_mask(IDS))
    np.testing.assert_allclose(found, expected, atol=1e-5)
