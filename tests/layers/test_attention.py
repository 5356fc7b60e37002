"""Attention agrees with arithmetic by hand and with Keras' own layer."""

import keras
import numpy as np
import pytest

from t2t_repro.layers.attention import MultiHeadAttention, attention_weights
from t2t_repro.layers.masks import MASKED, causal_bias, padding_bias
from t2t_repro.layers.rows import rows_of, sentences_of


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def built(num_heads=2, d_model=12, d_k=4, d_v=5, dropout=0.0):
    layer = MultiHeadAttention(num_heads, d_model, d_k, d_v, dropout)
    layer.build()
    return layer


def attended(layer, x, memory, bias=None, seed=None):
    """Attends from sentences to sentences, (batch, length, d_model) each."""
    shape, memory_shape = x.shape[:2], memory.shape[:2]
    rows, memory = rows_of(x), rows_of(memory)
    found = layer(rows, memory, bias, seed, shape=shape, memory_shape=memory_shape)
    return sentences_of(found, shape)


def keras_layer(ours, sources, targets):
    """Returns Keras' layer with the same weights, made for inputs like these."""
    theirs = keras.layers.MultiHeadAttention(
        ours.num_heads, ours.d_k, ours.d_v, use_bias=False, output_shape=ours.d_model
    )
    theirs.build(targets.shape, sources.shape, sources.shape)
    heads, d_model = ours.num_heads, ours.d_model
    query, key, value = (
        layer.kernel.numpy().reshape(d_model, heads, -1)
        for layer in (ours.query, ours.key, ours.value)
    )
    output = ours.output_projection.kernel.numpy().reshape(heads, -1, d_model)
    expected = {"query": query, "key": key, "value": value, "output": output}
    for weight in theirs.weights:
        weight.assign(expected[weight.path.split("/")[-2].replace("attention_", "")])
    return theirs


def test_three_tokens_are_attended_to_as_by_hand():
    # One query, keys that score 0, ln 2 and ln 5: the weights are 1/8, 2/8, 5/8.
    query = np.array([[[[1.0, 0.0]]]], "float32")
    key = np.array([[[[0.0, 7.0], [np.log(2), 3.0], [np.log(5), -1.0]]]], "float32")
    weights = attention_weights(query, key, None)
    np.testing.assert_allclose(weights, [[[[1 / 8, 2 / 8, 5 / 8]]]], rtol=1e-6)
    # Without the last key: 1/3 and 2/3, and exactly nothing for the hidden one.
    hidden = np.array([0.0, 0.0, MASKED], "float32")
    weights = np.array(attention_weights(query, key, hidden))
    np.testing.assert_allclose(weights, [[[[1 / 3, 2 / 3, 0]]]], rtol=1e-6)
    assert weights[0, 0, 0, 2] == 0.0


def test_queries_are_scaled_by_the_root_of_d_k():
    layer = built(num_heads=2, d_model=12, d_k=9)
    x = random(1, 3, 12)
    expected = (x @ layer.query.kernel.numpy()).reshape(1, 3, 2, 9) / 3
    np.testing.assert_allclose(
        layer.project_query(x[0], (1, 3)), expected.transpose(0, 2, 1, 3), atol=1e-6
    )


def test_the_formula_of_the_paper_in_float64():
    """Equation (1) and section 3.2.2, head by head, with d_k unlike d_v."""
    layer = built(num_heads=3, d_model=12, d_k=4, d_v=5)
    x, memory = random(2, 3, 12, seed=1), random(2, 6, 12, seed=2)
    kernels = [
        part.kernel.numpy().astype("float64")
        for part in (layer.query, layer.key, layer.value, layer.output_projection)
    ]
    query, key, value, output = kernels
    heads = []
    for head in range(3):
        k, v = slice(head * 4, head * 4 + 4), slice(head * 5, head * 5 + 5)
        scores = (x @ query[:, k]) @ (memory @ key[:, k]).transpose(0, 2, 1) / 2
        weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        heads.append(weights @ (memory @ value[:, v]))
    expected = np.concatenate(heads, axis=-1) @ output
    np.testing.assert_allclose(attended(layer, x, memory), expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (4, 7), (6, 3)])
def test_it_equals_the_layer_of_keras(d_k, d_v, causal):
    ours = built(d_k=d_k, d_v=d_v)
    x = random(2, 5, 12)
    ids = np.array([[3, 4, 5, 6, 1], [3, 4, 1, 0, 0]])
    theirs = keras_layer(ours, x, x)
    bias = padding_bias(ids) + (causal_bias(5) if causal else 0)
    expected = theirs(
        x, x, attention_mask=(ids != 0)[:, None, :], use_causal_mask=causal
    )
    np.testing.assert_allclose(attended(ours, x, x, bias), expected, atol=1e-5)


def test_hidden_keys_and_values_change_nothing():
    layer = built()
    x, memory = random(2, 3, 12), random(2, 5, 12, seed=1)
    ids = np.array([[5, 6, 1, 0, 0], [5, 6, 7, 1, 0]])
    other = np.where(ids[..., None] == 0, 100 * random(2, 5, 12, seed=2), memory)
    bias = padding_bias(ids)
    found, same = attended(layer, x, memory, bias), attended(layer, x, other, bias)
    np.testing.assert_array_equal(found, same)


def test_dropped_weights_come_with_a_seed_alone():
    layer = built(dropout=0.5)
    x = random(1, 4, 12)
    plain = np.array(attended(layer, x, x))
    np.testing.assert_array_equal(plain, attended(layer, x, x))
    dropped = np.array(attended(layer, x, x, seed=np.array([1, 2])))
    assert np.abs(plain - dropped).max() > 1e-3


def test_projections_have_no_bias_and_the_papers_shapes():
    layer = built(num_heads=2, d_model=12, d_k=4, d_v=5)
    assert {v.path.split("/", 1)[1]: tuple(v.shape) for v in layer.weights} == {
        "query/kernel": (12, 8),
        "key/kernel": (12, 8),
        "value/kernel": (12, 10),
        "output/kernel": (10, 12),
    }


def test_a_single_key_gets_all_the_weight():
    query, key = random(2, 3, 4, 5), random(2, 3, 1, 5)
    np.testing.assert_array_equal(
        attention_weights(query, key, np.float32(MASKED)), np.ones((2, 3, 4, 1))
    )


def test_a_folded_memory_is_attended_to_as_a_whole_one():
    layer = built()
    x, memory = random(2, 3, 12), random(2, 6, 12, seed=1)
    bias = padding_bias(np.array([[5, 6, 7, 8, 9, 1], [5, 6, 7, 1, 0, 0]]))
    keys, values = layer.project_memory(rows_of(memory), (2, 6))
    keys, values = layer.fold(keys, values)
    assert (keys.shape, values.shape) == ((2, 12, 2 * 6), (2, 2 * 6, 12))
    found = layer.attend_folded(rows_of(x), keys, values, bias, (2, 3))
    expected = attended(layer, x, memory, bias)
    np.testing.assert_allclose(sentences_of(found, (2, 3)), expected, atol=1e-6)
