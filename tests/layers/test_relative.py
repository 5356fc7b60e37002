"""Relative positions, against the formulas of Shaw et al. 2018 written out."""

import numpy as np
import pytest

from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.masks import causal_bias
from t2t_repro.layers.relative import RelativeTable, distances_within


def test_distances_are_the_keys_place_less_the_querys():
    np.testing.assert_array_equal(
        distances_within(3), [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]
    )


def test_far_distances_are_one():
    table = RelativeTable(max_distance=2, depth=1)
    table.build()
    table.table.assign([[-20], [-10], [0], [10], [20]])
    found = table(np.array([[-9, -2, -1, 0, 1, 2, 9]]))
    np.testing.assert_array_equal(found[0, :, 0], [-20, -20, -10, 0, 10, 20, 20])


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_equations_3_and_4(causal):
    heads, d_model, depth, length, far = 2, 6, 3, 5, 2
    layer = MultiHeadAttention(heads, d_model, depth, depth, max_relative_position=far)
    layer.build()
    x = np.random.default_rng(1).normal(size=(length, d_model)).astype("float32")
    keys, values = layer.relative_keys.table, layer.relative_values.table
    expected = np.zeros((length, heads * depth))
    for head in range(heads):
        own = slice(head * depth, (head + 1) * depth)
        q, k, v = (
            (x @ projection.kernel.numpy())[:, own]
            for projection in (layer.query, layer.key, layer.value)
        )
        for i in range(length):
            seen = range(i + 1 if causal else length)
            place = [int(np.clip(j - i, -far, far)) + far for j in seen]
            score = [
                q[i] @ (k[j] + np.array(keys[p])) / depth**0.5
                for j, p in zip(seen, place, strict=True)
            ]
            weight = np.exp(score) / np.exp(score).sum()
            expected[i, own] = sum(
                w * (v[j] + np.array(values[p]))
                for w, j, p in zip(weight, seen, place, strict=True)
            )
    expected = expected @ layer.output_projection.kernel.numpy()
    bias = causal_bias(length) if causal else None
    shape = (1, length)
    found = layer(x, x, bias, shape=shape, memory_shape=shape)
    np.testing.assert_allclose(found, expected, atol=1e-5)
