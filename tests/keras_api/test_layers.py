"""Single layers as a Keras user calls them."""

import inspect
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests import sixteen_bits
from tests.arrays import random
from tests.keras_api.every_layer import CASES, SIZES, called

EVERY_LAYER = pytest.mark.parametrize("name", CASES)
WITH_WEIGHTS = pytest.mark.parametrize(
    "name", [name for name in CASES if name not in ("Dropout", "PositionalEncoding")]
)
X, MEMORY = random(2, 6, 8), random(2, 5, 8, seed=1)


def test_the_cases_cover_all_public_layers():
    public = {
        name
        for name in layers.__all__
        if inspect.isclass(getattr(layers, name))
        and issubclass(getattr(layers, name), keras.layers.Layer)
    }
    assert {name.partition(" ")[0] for name in CASES} == public


# Calls


@EVERY_LAYER
def test_a_layer_can_be_called_on_a_batch(name):
    layer, output = called(name)
    case = CASES[name]
    assert tuple(output.shape) == (*case.inputs[0].shape[:2], case.width)
    assert layer.built
    assert np.isfinite(output).all()


@EVERY_LAYER
def test_a_layer_can_be_called_on_keras_tensors_of_unknown_sizes(name):
    case = CASES[name]
    inputs = [
        keras.Input((None, *each.shape[2:]), dtype=str(each.dtype))
        for each in case.inputs
    ]
    output = case.make()(*inputs, **case.options)
    assert output.shape[2] == case.width
    assert output.dtype == "float32"


@EVERY_LAYER
def test_an_unbuilt_layer_computes_the_shape_of_its_output(name):
    case = CASES[name]
    _, output = called(name)
    shapes = [tuple(each.shape) for each in case.inputs]
    assert tuple(case.make().compute_output_shape(*shapes)) == tuple(output.shape)


@EVERY_LAYER
def test_time_distributed_applies_a_layer_over_another_axis(name):
    case = CASES[name]
    if len(case.inputs) > 1 or case.options:
        pytest.skip("TimeDistributed passes one input and no options")
    layer, expected = called(name)
    (x,) = (np.stack([each, each], axis=1) for each in case.inputs)
    outside = keras.Input(x.shape[1:], dtype=str(x.dtype))
    over = keras.Model(outside, keras.layers.TimeDistributed(layer)(outside))
    np.testing.assert_allclose(over(x)[:, 1], expected, rtol=1e-5, atol=1e-6)


@WITH_WEIGHTS
def test_a_layer_can_be_built_from_shapes(name):
    case = CASES[name]
    layer = case.make(name="layer")
    layer.build(*(each.shape for each in case.inputs))
    expected = [(v.path, v.shape) for v in called(name)[0].weights]
    assert [(v.path, v.shape) for v in layer.weights] == expected
    assert layer.built


def test_attention_output_has_the_width_of_the_query_or_d_model():
    x, memory = random(2, 3, 7), random(2, 4, 9)
    assert layers.MultiHeadAttention(2, 4, 5)(x, memory).shape == (2, 3, 7)
    wide = layers.MultiHeadAttention(2, 4, 5, d_model=20)
    assert wide(x, memory).shape == (2, 3, 20)


def test_attention_scores_are_returned_on_demand_and_sum_to_one():
    attention = layers.MultiHeadAttention(2, 4, 5)
    output, scores = attention(X, MEMORY, return_attention_scores=True)
    np.testing.assert_array_equal(output, attention(X, MEMORY))
    assert scores.shape == (2, 2, 6, 5)
    np.testing.assert_allclose(np.sum(scores, axis=-1), np.ones((2, 2, 6)), rtol=1e-6)


def test_count_params_counts_the_weights_of_a_layer():
    attention, _ = called("MultiHeadAttention")
    # Two heads, d_k 4 and d_v 5, without biases.
    assert attention.count_params() == 8 * 8 + 8 * 8 + 8 * 10 + 10 * 8


@EVERY_LAYER
def test_a_layer_has_the_given_name_or_that_of_its_class(name):
    layer, _ = called(name)
    assert layer.name == "layer"
    assert all(weight.path.startswith("layer/") for weight in layer.weights)
    snake = CASES[name].make().name.rstrip("0123456789").rstrip("_")
    assert snake.replace("_", "") == name.partition(" ")[0].lower()


@WITH_WEIGHTS
def test_a_frozen_layer_has_no_trainable_weights(name):
    layer, _ = called(name)
    assert layer.trainable_weights
    layer.trainable = False
    assert layer.trainable_weights == []
    assert CASES[name].make(trainable=False).trainable is False


@WITH_WEIGHTS
def test_gradients_reach_every_weight(name):
    case = CASES[name]
    layer, _ = called(name)
    with tf.GradientTape() as tape:
        output = layer(*case.inputs, **case.options)
        if name == "TokenEmbedding use_bias":  # The bias applies to logits.
            output = layer(output, reverse=True)
        loss = tf.reduce_sum(output * random(*output.shape, seed=3))
    gradients = tape.gradient(loss, [w.value for w in layer.trainable_weights])
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        assert gradient is not None, weight.path
        assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, weight.path


# Without the cases of single options, because compiling takes longest.
@pytest.mark.parametrize("name", [name for name in CASES if " " not in name])
def test_a_compiled_function_computes_the_same(name):
    layer, expected = called(name)
    case = CASES[name]

    @tf.function(jit_compile=True)
    def compiled(*inputs):
        return layer(*inputs, **case.options)

    output = compiled(*(tf.constant(each) for each in case.inputs))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)


# Configurations


@EVERY_LAYER
def test_a_layer_can_be_recreated_from_its_config(name):
    layer, output = called(name)
    config = layer.get_config()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    case = CASES[name]
    assert again(*case.inputs, **case.options).shape == output.shape
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(*case.inputs, **case.options), output)


@EVERY_LAYER
def test_a_config_contains_every_argument(name):
    layer = CASES[name].make()
    arguments = inspect.signature(type(layer)).parameters.values()
    names = {each.name for each in arguments if each.kind is not each.VAR_KEYWORD}
    assert names - {"name", "dtype", "trainable"} <= set(layer.get_config())


@EVERY_LAYER
def test_a_layer_can_be_serialized_as_json(name):
    layer = CASES[name].make(name="layer", dtype="mixed_bfloat16")
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()


def test_the_config_of_a_subclass_contains_its_own_arguments():
    @keras.saving.register_keras_serializable("keras_api")
    class Louder(layers.FeedForward):
        def __init__(self, d_ff, gain, **kwargs):
            super().__init__(d_ff, **kwargs)
            self.gain = gain

        def call(self, x, training=None):
            return self.gain * super().call(x, training=training)

    layer = Louder(6, gain=2.0, dropout=0.1)
    layer(X)
    again = Louder.from_config(layer.get_config())
    assert (again.d_ff, again.gain, again.dropout) == (6, 2.0, 0.1)
    again.build(X.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(X), layer(X))


def test_a_subclass_can_store_its_arguments_under_other_names():
    class Louder(layers.FeedForward):
        def __init__(self, d_ff, gain, **kwargs):
            super().__init__(d_ff, **kwargs)
            self._gain = gain

        def get_config(self):
            return super().get_config() | {"gain": self._gain}

    again = Louder.from_config(Louder(6, gain=2.0).get_config())
    assert (again.d_ff, again._gain) == (6, 2.0)


# Dtypes


@EVERY_LAYER
@pytest.mark.parametrize("dtype", sixteen_bits.both("mixed_"))
def test_a_mixed_policy_computes_in_16_bits_with_float32_weights(name, dtype):
    case = CASES[name]
    layer = case.make(dtype=dtype)
    output = layer(*case.inputs, **case.options)
    assert output.dtype == dtype.removeprefix("mixed_")
    assert {weight.dtype for weight in layer.trainable_weights} <= {"float32"}
    assert np.isfinite(tf.cast(output, "float32")).all()


@sixteen_bits.needs("bfloat16")
def test_a_global_policy_applies_to_new_layers():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = layers.EncoderLayer(**SIZES)
    finally:
        keras.config.set_dtype_policy(before)
    assert layer(X).dtype == "bfloat16"
    inner = layer.self_attention.query
    assert (inner.compute_dtype, inner.variable_dtype) == ("bfloat16", "float32")


@sixteen_bits.needs("bfloat16")
@EVERY_LAYER
def test_16_bit_outputs_are_close_to_float32(name):
    layer, expected = called(name)
    case = CASES[name]
    narrow = case.make(dtype="mixed_bfloat16")
    narrow.build(*(each.shape for each in case.inputs))
    narrow.set_weights(layer.get_weights())
    output = tf.cast(narrow(*case.inputs, **case.options), "float32")
    # The decoder rounds about 40 results in sequence. If TensorFlow truncates them
    # (processors without AVX-512), each has a relative error below 2^-7.
    assert np.linalg.norm(output - expected) <= 40 * 2**-7 * np.linalg.norm(expected)


@EVERY_LAYER
def test_a_float64_layer_returns_float64(name):
    case = CASES[name]
    output = case.make(dtype="float64")(*case.inputs, **case.options)
    assert output.dtype == "float64"


# Dropout

DROPPING = ("EncoderLayer", "DecoderLayer", "Encoder", "Decoder")


def with_dropout(name):
    """Creates a layer with all kinds of dropout; returns it and its inputs."""
    options = SIZES | {"dropout": 0.5, "attention_dropout": 0.5, "ffn_dropout": 0.5}
    if name in ("Encoder", "Decoder"):
        options["num_layers"] = 2
    return getattr(layers, name)(**options), CASES[name].inputs


@pytest.mark.parametrize("name", DROPPING)
def test_drops_only_in_training(name):
    layer, inputs = with_dropout(name)
    plain = np.array(layer(*inputs))
    np.testing.assert_array_equal(layer(*inputs, training=False), plain)
    one, two = (np.array(layer(*inputs, training=True)) for _ in range(2))
    assert np.abs(one - plain).max() > 1e-2
    assert np.abs(one - two).max() > 1e-2


@pytest.mark.parametrize("name", DROPPING)
def test_a_random_seed_determines_weights_and_dropout(name):
    outputs = []
    for _ in range(2):
        keras.utils.set_random_seed(3)
        layer, inputs = with_dropout(name)
        outputs.append([np.array(layer(*inputs, training=True)) for _ in range(2)])
    np.testing.assert_array_equal(*outputs)


def test_restoring_a_seed_generator_repeats_the_mask():
    layer = layers.Dropout(0.5, seed=1)
    (state,) = layer.variables
    before = state.numpy()
    one, two = (np.array(layer(X, training=True)) for _ in range(2))
    assert not np.array_equal(one, two)
    state.assign(before)
    np.testing.assert_array_equal(layer(X, training=True), one)
