"""Keras' own quantization and LoRA work on every matmul of the layers."""

import h5py
import keras
import numpy as np
import pytest

from t2t_repro import layers
from tests import tiny
from tests.arrays import random

pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
X = random(3, 5)
IDS = np.array([[2, 3, 0], [1, 0, 2]])
PAIR = {"inputs": IDS, "targets": IDS[:, ::-1]}


def round_to_int8(x, axis):
    """Rounds float (..., channels) to 255 values between its extremes on an axis."""
    scale = 127 / np.abs(x).max(axis, keepdims=True)
    return np.rint(x * scale) / scale


def dense():
    layer = layers.Dense(7, use_bias=True, activation="relu")
    layer.build((None, 5))
    layer.bias.assign(random(7, seed=1))
    return layer


def embedding():
    layer = layers.TokenEmbedding(4, 5, use_bias=True, start_symbol=3)
    layer.build()
    layer.bias.assign(random(4, seed=1))
    return layer


def embed(table):
    """Embeds `IDS`; the start symbol, 3, replaces PAD."""
    return table[np.where(IDS == 0, 3, IDS)] * 5**0.5


def test_int8_of_a_projection_rounds_the_kernel_and_the_inputs():
    layer = dense()
    kernel, bias = np.array(layer.kernel), np.array(layer.bias)
    layer.quantize("int8")
    expected = round_to_int8(X, 1) @ round_to_int8(kernel, 0) + bias
    np.testing.assert_allclose(layer(X), np.maximum(expected, 0), atol=1e-5)


def test_int8_of_a_table_keeps_scale_start_symbol_and_bias():
    layer = embedding()
    table, bias = np.array(layer.table), np.array(layer.bias)
    layer.quantize("int8")
    rounded = round_to_int8(table, 1)
    np.testing.assert_allclose(layer(IDS), embed(rounded), atol=1e-5)
    expected = round_to_int8(X, 1) @ rounded.T + bias
    np.testing.assert_allclose(layer(X, reverse=True), expected, atol=1e-5)


def test_int8_embeds_padding_as_zeros():
    layer = layers.TokenEmbedding(4, 5)
    layer.build()
    layer.quantize("int8")
    np.testing.assert_array_equal(layer(IDS)[0, 2], np.zeros(5))


def test_lora_adds_the_product_of_its_factors():
    a, b = random(5, 2, seed=2), random(2, 7, seed=3)
    layer = dense()
    kernel, bias = np.array(layer.kernel), np.array(layer.bias)
    layer.enable_lora(2)
    np.testing.assert_allclose(layer(X), np.maximum(X @ kernel + bias, 0), atol=1e-5)
    layer.lora_kernel_a.assign(a)
    layer.lora_kernel_b.assign(b)
    expected = np.maximum(X @ (kernel + a @ b) + bias, 0)
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)
    names = [variable.name for variable in layer.trainable_variables]
    assert names == ["bias", "lora_kernel_a", "lora_kernel_b"]


def test_lora_of_a_table_changes_embeddings_and_logits():
    a, b = random(4, 2, seed=2), random(2, 5, seed=3)
    layer = embedding()
    table, bias = np.array(layer.table) + a @ b, np.array(layer.bias)
    layer.enable_lora(2)
    layer.lora_embeddings_a.assign(a)
    layer.lora_embeddings_b.assign(b)
    np.testing.assert_allclose(layer(IDS), embed(table), atol=1e-5)
    expected = X @ table.T + bias
    np.testing.assert_allclose(layer(X, reverse=True), expected, atol=1e-5)


def test_quantize_reaches_every_matmul_and_saves_it(tmp_path):
    model = tiny.random_model(23, 0.1, softmax_bias=True)
    before = np.array(model(PAIR))
    model.quantize("int8")
    expected = np.array(model(PAIR))
    assert 0 < np.abs(expected - before)[..., 1:].max() < 0.1 * np.abs(before).max()
    matrices = [w for w in model.weights if len(w.shape) == 2 and "space" not in w.path]
    # 4 projections per attention, 2 per feed-forward network, and the shared table.
    assert [w.dtype for w in matrices] == ["int8"] * (3 * 4 + 2 * 2 + 1)
    for name in ("once.keras", "twice.keras"):
        model.save(tmp_path / name)
        model = keras.saving.load_model(tmp_path / name)
        np.testing.assert_array_equal(model(PAIR), expected)
    with pytest.raises(ValueError, match="already quantized"):
        model.softmax_table.quantize("int8")


def test_a_layer_can_be_created_for_int8_weights():
    layer = layers.Dense(7, dtype="int8_from_float32")
    layer.build((None, 5))
    assert [v.dtype for v in layer.variables] == ["int8", "float32"]
    assert layers.Dense(7, dtype="int8_from_float32")(X).shape == (3, 7)
    with pytest.raises(ValueError, match="isn't yet built"):
        layers.Dense(7).quantize("int8")


def test_weights_and_configurations_of_earlier_files_can_be_read(tmp_path):
    old = {"name": "layer", "trainable": True, "dtype": "float32"}
    sizes = {"vocab_size": 4, "d_model": 5, "scale": True, "mask_zero": False}
    sizes |= {"use_bias": True, "start_symbol": 3}
    table = layers.TokenEmbedding.from_config(old | sizes)
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, table(inputs))
    with h5py.File(tmp_path / "old.weights.h5", "w") as file:
        file["layers/token_embedding/vars/0"] = random(4, 5)
        file["layers/token_embedding/vars/1"] = random(4, seed=1)
    model.load_weights(tmp_path / "old.weights.h5")
    np.testing.assert_array_equal(table.table, random(4, 5))
    np.testing.assert_array_equal(table.bias, random(4, seed=1))
    layer = layers.Dense.from_config(old | {"units": 7, "use_bias": True})
    assert (layer.units, layer.use_bias, layer.name) == (7, True, "layer")


def test_arguments_of_keras_embeddings_are_refused():
    with pytest.raises(TypeError, match="tie_weights"):
        layers.TokenEmbedding(4, 5, tie_weights=False)
