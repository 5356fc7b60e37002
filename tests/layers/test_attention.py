"""Attention equals arithmetic by hand; `tests/keras_api` compares it with Keras'."""

import numpy as np
import tensorflow as tf

from t2t_repro.layers.attention import MultiHeadAttention, masked_softmax
from t2t_repro.layers.masks import padding_mask
from t2t_repro.layers.seeded_dropout import dropout_seed
from tests.arrays import random


def built(num_heads=2, channels=12, d_k=4, d_v=5, **options):
    layer = MultiHeadAttention(num_heads, d_k, d_v, **options)
    layer.build((None, None, channels), (None, None, channels))
    return layer


def test_masked_softmax_equals_probabilities_by_hand():
    # One query whose keys score 0, ln 2 and ln 5: the weights are 1/8, 2/8, 5/8.
    logits = np.array([[[[0.0, np.log(2), np.log(5)]]]], "float32")
    weights = masked_softmax(logits, None)
    np.testing.assert_allclose(weights, [[[[1 / 8, 2 / 8, 5 / 8]]]], rtol=1e-6)
    # Without the last key: 1/3, 2/3, and exactly 0 for the masked key.
    weights = np.array(masked_softmax(logits, np.array([True, True, False])))
    np.testing.assert_allclose(weights, [[[[1 / 3, 2 / 3, 0]]]], rtol=1e-6)
    assert weights[0, 0, 0, 2] == 0.0


def test_attention_weights_equal_probabilities_by_hand():
    # The same scores, from a query and keys with two channels.
    query = np.array([[[[1.0, 0.0]]]], "float32")
    key = np.array([[[[0.0, 7.0], [np.log(2), 3.0], [np.log(5), -1.0]]]], "float32")
    weights = built(num_heads=1, d_k=2).attention_weights(query, key, None)
    np.testing.assert_allclose(weights, [[[[1 / 8, 2 / 8, 5 / 8]]]], rtol=1e-6)


def test_queries_are_divided_by_the_root_of_d_k():
    layer = built(num_heads=2, channels=12, d_k=9)
    x = random(1, 3, 12)
    expected = (x @ layer.query.kernel.numpy()).reshape(1, 3, 2, 9) / 3
    np.testing.assert_allclose(
        layer.project_query(x), expected.transpose(0, 2, 1, 3), atol=1e-6
    )


def test_equals_the_formula_of_the_paper_in_float64():
    """Equation (1) and section 3.2.2, head by head, with different d_k and d_v."""
    layer = built(num_heads=3, channels=12, d_k=4, d_v=5)
    x, memory = random(2, 3, 12, seed=1), random(2, 6, 12, seed=2)
    kernels = [
        part.kernel.numpy().astype("float64")
        for part in (layer.query, layer.key, layer.value, layer.output_projection)
    ]
    query, key, value, output = kernels
    heads, weights_of_heads = [], []
    for head in range(3):
        k, v = slice(head * 4, head * 4 + 4), slice(head * 5, head * 5 + 5)
        scores = (x @ query[:, k]) @ (memory @ key[:, k]).transpose(0, 2, 1) / 2
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        weights_of_heads.append(weights)
        heads.append(weights @ (memory @ value[:, v]))
    expected = np.concatenate(heads, axis=-1) @ output
    result, scores = layer(x, memory, return_attention_scores=True)
    np.testing.assert_allclose(result, expected, atol=2e-6)
    np.testing.assert_allclose(scores, np.stack(weights_of_heads, 1), atol=1e-6)


def test_masked_keys_and_values_do_not_affect_the_output():
    layer = built()
    x, memory = random(2, 3, 12), random(2, 5, 12, seed=1)
    ids = np.array([[5, 6, 1, 0, 0], [5, 6, 7, 1, 0]])
    other = np.where(ids[..., None] == 0, 100 * random(2, 5, 12, seed=2), memory)
    mask = padding_mask(ids)
    output, same = (layer(x, each, attention_mask=mask) for each in (memory, other))
    np.testing.assert_array_equal(output, same)


def test_drops_attention_weights_only_in_training():
    layer = built(dropout=0.5)
    x = random(1, 4, 12)
    plain = np.array(layer(x, x))
    np.testing.assert_array_equal(plain, layer(x, x, training=False))
    with dropout_seed(tf.constant([1, 2])):
        np.testing.assert_array_equal(plain, layer(x, x))
        dropped = np.array(layer(x, x, training=True))
    assert np.abs(plain - dropped).max() > 1e-3


def test_returns_attention_weights_before_dropout():
    layer = built(dropout=0.5)
    x = random(1, 4, 12)
    _, expected = layer(x, x, return_attention_scores=True)
    _, weights = layer(x, x, return_attention_scores=True, training=True)
    np.testing.assert_array_equal(weights, expected)


def test_projections_have_the_shapes_of_the_paper_and_no_bias():
    layer = built(num_heads=2, channels=12, d_k=4, d_v=5)
    assert {v.path.split("/", 1)[1]: tuple(v.shape) for v in layer.weights} == {
        "query/kernel": (12, 8),
        "key/kernel": (12, 8),
        "value/kernel": (12, 10),
        "output/kernel": (10, 12),
    }


def test_a_single_key_has_weight_one():
    hidden = np.zeros((2, 1, 1, 1), bool)
    np.testing.assert_array_equal(
        masked_softmax(random(2, 3, 4, 1), hidden), np.ones((2, 3, 4, 1))
    )


def test_a_fully_masked_query_has_finite_weights_in_float16():
    # float16 cannot represent -1e9: with -inf, the filler rows of a batch would be NaN.
    logits = tf.cast(random(1, 1, 2, 3), tf.float16)
    weights = masked_softmax(logits, np.zeros((1, 1, 1, 3), bool))
    assert weights.dtype == tf.float16
    np.testing.assert_allclose(tf.reduce_sum(weights, -1), np.ones((1, 1, 2)), 2e-3)
