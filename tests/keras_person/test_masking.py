"""Padding is hidden by the mask that tensors carry, as Keras people expect."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import layers
from tests.keras_person.every_layer import SIZES, random

IDS = np.array([[5, 6, 7, 1, 0], [8, 1, 0, 0, 0]])
SYMBOLS = IDS != 0
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
    return np.where(SYMBOLS[..., None], x, 10 * random(*x.shape, seed=9))


@EITHER_EMBEDDING
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_mask_of_an_embedding_is_as_good_as_one_that_is_given(kind, norm):
    embedding = EMBEDDINGS[kind]()
    layer = layers.EncoderLayer(**SIZES, norm=norm)
    carried = layer(embedding(IDS))
    vectors = np.array(embedding(IDS))
    given = layer(vectors, attention_mask=layers.padding_mask(IDS))
    np.testing.assert_allclose(carried, given, atol=1e-6)
    assert np.abs(np.array(layer(vectors) - given))[SYMBOLS].max() > 1e-3


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_stands_in_padding_changes_no_symbol(norm):
    encoder = layers.Encoder(2, norm, **SIZES)
    x = random(2, 5, 8)
    one, two = (
        np.array(encoder(with_mask(each, SYMBOLS))) for each in (x, noise_in_padding(x))
    )
    np.testing.assert_array_equal(one[SYMBOLS], two[SYMBOLS])


def test_padding_of_the_source_is_hidden_from_the_decoder():
    decoder = layers.Decoder(2, **SIZES)
    x, memory = random(2, 3, 8), random(2, 5, 8, seed=1)
    one, two = (
        decoder(x, with_mask(each, SYMBOLS))
        for each in (memory, noise_in_padding(memory))
    )
    np.testing.assert_array_equal(one, two)
    given = decoder(x, memory, cross_attention_mask=layers.padding_mask(IDS))
    np.testing.assert_allclose(one, given, atol=1e-6)


def test_padding_of_the_target_is_hidden_from_later_targets():
    decoder = layers.Decoder(2, **SIZES)
    x, memory = random(2, 5, 8), random(2, 4, 8, seed=1)
    seen = np.array([[0, 1, 1, 0, 1], [1, 0, 1, 1, 1]], bool)
    noise = np.where(seen[..., None], x, 10 * random(*x.shape, seed=9))
    one, two = (np.array(decoder(with_mask(each, seen), memory)) for each in (x, noise))
    np.testing.assert_array_equal(one[seen], two[seen])


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
def test_a_layer_hands_the_mask_on(make):
    output = make()(layers.TokenEmbedding(10, 8, mask_zero=True)(IDS))
    np.testing.assert_array_equal(output._keras_mask, SYMBOLS)


def test_the_output_of_a_decoder_has_the_mask_of_the_targets():
    embedding = layers.TokenEmbedding(10, 8, mask_zero=True)
    targets = np.array([[4, 1, 0], [3, 3, 1]])
    output = layers.Decoder(1, **SIZES)(embedding(targets), embedding(IDS))
    np.testing.assert_array_equal(output._keras_mask, targets != 0)


@EITHER_EMBEDDING
def test_pooling_after_an_encoder_averages_the_symbols_alone(kind):
    symbols = keras.Input((None,), dtype="int32")
    x = layers.PositionalEncoding()(EMBEDDINGS[kind]()(symbols))
    x = layers.Encoder(2, **SIZES)(x)
    model = keras.Model(symbols, [x, keras.layers.GlobalAveragePooling1D()(x)])
    encoded, pooled = (np.array(each) for each in model(IDS))
    share = SYMBOLS / SYMBOLS.sum(axis=1, keepdims=True)
    expected = (encoded * share[..., None]).sum(axis=1)
    np.testing.assert_allclose(pooled, expected, atol=1e-6)


@EITHER_EMBEDDING
def test_a_sentence_is_pooled_the_same_with_more_padding(kind):
    symbols = keras.Input((None,), dtype="int32")
    x = layers.EncoderLayer(**SIZES)(EMBEDDINGS[kind]()(symbols))
    model = keras.Model(symbols, keras.layers.GlobalAveragePooling1D()(x))
    longer = np.pad(IDS, ((0, 0), (0, 7)))
    np.testing.assert_allclose(model(longer), model(IDS), atol=1e-6)


def test_a_masking_layer_of_keras_hides_what_it_masks():
    x = np.where(SYMBOLS[..., None], random(2, 5, 8), 0)
    masked = keras.Sequential([keras.layers.Masking(), layers.EncoderLayer(**SIZES)])
    found = masked(x)
    expected = masked.layers[1](x, attention_mask=SYMBOLS[:, None])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padding_carries_no_weight_in_the_loss_of_keras():
    """Keras multiplies the loss by the mask that the model's output carries."""
    symbols = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(10, 8, mask_zero=True)(symbols)
    x = layers.Dense(10)(layers.EncoderLayer(**SIZES)(x))
    model = keras.Model(symbols, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, jit_compile=False)
    labels = np.random.default_rng(0).integers(0, 10, IDS.shape)
    logits = np.array(model(IDS), "float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    found = model.evaluate(IDS, labels, verbose=0)
    assert found == pytest.approx(losses[SYMBOLS].mean(), rel=1e-5)


def test_a_compiled_function_hides_what_python_hides():
    embedding = layers.TokenEmbedding(10, 8, mask_zero=True)
    encoder = layers.Encoder(2, **SIZES)
    expected = encoder(embedding(IDS))
    compiled = tf.function(lambda ids: encoder(embedding(ids)), jit_compile=True)
    np.testing.assert_allclose(compiled(tf.constant(IDS)), expected, atol=2e-6)


def test_without_a_mask_padding_is_seen():
    encoder = layers.Encoder(2, **SIZES)
    x = random(2, 5, 8)
    one, two = (np.array(encoder(each)) for each in (x, noise_in_padding(x)))
    assert np.abs(one - two)[SYMBOLS].max() > 1e-2
