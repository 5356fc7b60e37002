"""Embeddings are scaled rows, padding embeds to zeros, logits use the same table."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.embedding import TargetSpace, TokenEmbedding


@pytest.fixture
def embedding():
    layer = TokenEmbedding(vocab_size=5, d_model=4)
    layer.build()
    layer.table.assign(np.arange(20.0).reshape(5, 4))
    return layer


def test_embeddings_are_multiplied_by_the_root_of_d_model(embedding):
    # sqrt(d_model) is 2, so row 3 (12, 13, 14, 15) is doubled.
    np.testing.assert_array_equal(
        embedding(np.array([[3, 1]])), [[[24, 26, 28, 30], [8, 10, 12, 14]]]
    )


def test_embeddings_without_a_scale_are_the_rows():
    layer = TokenEmbedding(vocab_size=3, d_model=4, scale=False)
    layer.build()
    np.testing.assert_array_equal(layer(np.array([[2]]))[0, 0], layer.table[2])


def test_padding_embeds_to_zeros(embedding):
    embedding.table.assign(np.full((5, 4), 9.0))
    vectors = np.array(embedding(np.array([[0, 2, 0]])))
    np.testing.assert_array_equal(vectors[0, [0, 2]], np.zeros((2, 4)))


def test_padding_has_no_gradient(embedding):
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(embedding(np.array([[0, 2, 2]])))
    gradient = tf.convert_to_tensor(tape.gradient(total, embedding.table.value))
    expected = np.zeros((5, 4))
    expected[2] = 2 * 2  # Row 2 is used twice and scaled by sqrt(4).
    np.testing.assert_array_equal(gradient, expected)


def test_logits_are_the_matmul_with_the_transposed_table(embedding):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    table = np.arange(20.0).reshape(5, 4)
    output = embedding(x, reverse=True)
    np.testing.assert_allclose(output, x @ table.T, rtol=1e-5, atol=1e-5)


def test_initial_standard_deviation_is_one_over_root_d_model():
    layer = TokenEmbedding(vocab_size=500, d_model=64)
    layer.build()
    table = layer.table.numpy()
    assert table.std() == pytest.approx(64**-0.5, rel=0.02)
    # The normal distribution is not truncated at two standard deviations.
    assert np.abs(table).max() > 3 * 64**-0.5


def test_only_the_table_draws_random_numbers():
    # Initial weights of later layers depend on it.
    keras.utils.set_random_seed(1)
    layer = TokenEmbedding(5, 4)
    layer.build()
    following = Dense(3)
    following.build((None, 4))
    keras.utils.set_random_seed(1)
    table = keras.initializers.RandomNormal(stddev=0.5)((5, 4))
    np.testing.assert_array_equal(layer.table, table)
    kernel = keras.initializers.GlorotUniform()((4, 3))
    np.testing.assert_array_equal(following.kernel, kernel)


def test_embeddings_carry_a_mask_only_with_mask_zero():
    ids = np.array([[3, 0, 1], [0, 2, 0]])
    masked, plain = TokenEmbedding(5, 4, mask_zero=True), TokenEmbedding(5, 4)
    np.testing.assert_array_equal(masked(ids)._keras_mask, ids != 0)
    assert not hasattr(plain(ids), "_keras_mask")


def test_target_space_adds_its_row_to_every_position():
    layer = TargetSpace(target_space_id=2)
    layer.build((None, None, 4))
    table = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    layer.table.assign(table)
    x = np.ones((2, 3, 4), "float32")
    np.testing.assert_array_equal(layer(x), x + table[2])
