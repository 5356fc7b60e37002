"""The masks that Keras tensors carry hide padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests.arrays import random
from tests.keras_api.every_layer import SIZES

IDS = np.array([[5, 6, 7, 1, 0], [8, 1, 0, 0, 0]])
TOKENS = IDS != 0
EMBEDDINGS = {
    "keras": lambda: keras.layers.Embedding(10, 8, mask_zero=True),
    "ours": lambda: layers.TokenEmbedding(10, 8, mask_zero=True),
}
EITHER_EMBEDDING = pytest.mark.parametrize("kind", EMBEDDINGS)


def with_mask(x, mask):
    """Returns a tensor that carries a mask."""
    x = tf.constant(x)
    x._keras_mask = tf.constant(mask)
    return x


def noise_in_padding(x):
    return np.where(TOKENS[..., None], x, 10 * random(*x.shape, seed=9))


@EITHER_EMBEDDING
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_mask_of_an_embedding_equals_an_attention_mask(kind, norm):
    embedding = EMBEDDINGS[kind]()
    layer = layers.EncoderLayer(**SIZES, norm=norm)
    output = layer(embedding(IDS))
    vectors = np.array(embedding(IDS))
    expected = layer(vectors, attention_mask=layers.padding_mask(IDS))
    np.testing.assert_allclose(output, expected, atol=1e-6)
    assert np.abs(np.array(layer(vectors) - expected))[TOKENS].max() > 1e-3


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_values_at_padding_do_not_affect_other_positions(norm):
    encoder = layers.Encoder(2, norm, **SIZES)
    x = random(2, 5, 8)
    one, two = (
        np.array(encoder(with_mask(each, TOKENS))) for each in (x, noise_in_padding(x))
    )
    np.testing.assert_array_equal(one[TOKENS], two[TOKENS])


def test_source_padding_does_not_affect_the_decoder():
    decoder = layers.Decoder(2, **SIZES)
    x, memory = random(2, 3, 8), random(2, 5, 8, seed=1)
    one, two = (
        decoder(x, with_mask(each, TOKENS))
        for each in (memory, noise_in_padding(memory))
    )
    np.testing.assert_array_equal(one, two)
    expected = decoder(x, memory, cross_attention_mask=layers.padding_mask(IDS))
    np.testing.assert_allclose(one, expected, atol=1e-6)


def test_target_padding_does_not_affect_later_targets():
    decoder = layers.Decoder(2, **SIZES)
    x, memory = random(2, 5, 8), random(2, 4, 8, seed=1)
    visible = np.array([[0, 1, 1, 0, 1], [1, 0, 1, 1, 1]], bool)
    noise = np.where(visible[..., None], x, 10 * random(*x.shape, seed=9))
    one, two = (
        np.array(decoder(with_mask(each, visible), memory)) for each in (x, noise)
    )
    np.testing.assert_array_equal(one[visible], two[visible])


@pytest.mark.parametrize(
    "make",
    [
        layers.PositionalEncoding,
        lambda: layers.LearnedPosition(9),
        layers.TargetSpace,
        lambda: layers.Dropout(0.1),
        lambda: layers.Dense(8),
        lambda: layers.FeedForward(9),
        layers.LayerNormalization,
        lambda: layers.EncoderLayer(**SIZES),
        lambda: layers.Encoder(2, **SIZES),
    ],
)
def test_layers_pass_the_mask_on(make):
    output = make()(layers.TokenEmbedding(10, 8, mask_zero=True)(IDS))
    np.testing.assert_array_equal(output._keras_mask, TOKENS)


def test_decoder_output_carries_the_mask_of_the_targets():
    embedding = layers.TokenEmbedding(10, 8, mask_zero=True)
    targets = np.array([[4, 1, 0], [3, 3, 1]])
    output = layers.Decoder(1, **SIZES)(embedding(targets), embedding(IDS))
    np.testing.assert_array_equal(output._keras_mask, targets != 0)


@EITHER_EMBEDDING
def test_pooling_after_an_encoder_averages_only_tokens(kind):
    ids = keras.Input((None,), dtype="int32")
    x = layers.PositionalEncoding()(EMBEDDINGS[kind]()(ids))
    x = layers.Encoder(2, **SIZES)(x)
    model = keras.Model(ids, [x, keras.layers.GlobalAveragePooling1D()(x)])
    encoded, pooled = (np.array(each) for each in model(IDS))
    weights = TOKENS / TOKENS.sum(axis=1, keepdims=True)
    expected = (encoded * weights[..., None]).sum(axis=1)
    np.testing.assert_allclose(pooled, expected, atol=1e-6)


@EITHER_EMBEDDING
def test_pooling_does_not_depend_on_the_amount_of_padding(kind):
    ids = keras.Input((None,), dtype="int32")
    x = layers.EncoderLayer(**SIZES)(EMBEDDINGS[kind]()(ids))
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(x))
    longer = np.pad(IDS, ((0, 0), (0, 7)))
    np.testing.assert_allclose(model(longer), model(IDS), atol=1e-6)


def test_the_mask_of_a_keras_masking_layer_applies():
    x = np.where(TOKENS[..., None], random(2, 5, 8), 0)
    masked = keras.Sequential([keras.layers.Masking(), layers.EncoderLayer(**SIZES)])
    result = masked(x)
    expected = masked.layers[1](x, attention_mask=TOKENS[:, None])
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_padding_has_no_weight_in_a_keras_loss():
    """Keras multiplies the loss by the mask of the model's output."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8, mask_zero=True)(ids)
    x = layers.Dense(10)(layers.EncoderLayer(**SIZES)(x))
    model = keras.Model(ids, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, jit_compile=False)
    labels = np.random.default_rng(0).integers(0, 10, IDS.shape)
    logits = np.array(model(IDS), "float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    result = model.evaluate(IDS, labels, verbose=0)
    assert result == pytest.approx(losses[TOKENS].mean(), rel=1e-5)


def test_a_compiled_function_applies_the_mask():
    embedding = layers.TokenEmbedding(10, 8, mask_zero=True)
    encoder = layers.Encoder(2, **SIZES)
    expected = encoder(embedding(IDS))
    compiled = tf.function(lambda ids: encoder(embedding(ids)), jit_compile=True)
    np.testing.assert_allclose(compiled(tf.constant(IDS)), expected, atol=2e-6)


def test_padding_is_visible_without_a_mask():
    encoder = layers.Encoder(2, **SIZES)
    x = random(2, 5, 8)
    one, two = (np.array(encoder(each)) for each in (x, noise_in_padding(x)))
    assert np.abs(one - two)[TOKENS].max() > 1e-2
