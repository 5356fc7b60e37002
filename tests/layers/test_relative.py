"""Relative positions equal the formulas of Shaw et al. 2018."""

import numpy as np
import pytest

from t2t_repro.layers.masks import causal_mask
from t2t_repro.layers.relative import RelativeAttention, RelativeTable


def test_far_distances_share_a_vector():
    table = RelativeTable(max_distance=2, depth=1)
    table.build()
    table.table.assign([[-20], [-10], [0], [10], [20]])
    output = table(np.array([[-9, -2, -1, 0, 1, 2, 9]]))
    np.testing.assert_array_equal(output[0, :, 0], [-20, -20, -10, 0, 10, 20, 20])


@pytest.mark.parametrize("radius", [0, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_equations_3_and_4(causal, radius):
    heads, d_model, depth, length, far = 2, 6, 3, 5, 2
    layer = RelativeAttention(
        heads, depth, depth, max_relative_position=far, radius=radius
    )
    x = np.random.default_rng(1).normal(size=(length, d_model)).astype("float32")
    output, scores = layer(
        x[None], x[None], use_causal_mask=causal, return_attention_scores=True
    )
    keys, values = layer.relative_keys.table, layer.relative_values.table
    expected = np.zeros((length, heads * depth))
    weights = np.zeros((heads, length, length))
    for head in range(heads):
        columns = slice(head * depth, (head + 1) * depth)
        q, k, v = (
            (x @ projection.kernel.numpy())[:, columns]
            for projection in (layer.query, layer.key, layer.value)
        )
        for i in range(length):
            visible = [
                j
                for j in range(i + 1 if causal else length)
                if not radius or abs(j - i) <= radius
            ]
            place = [int(np.clip(j - i, -far, far)) + far for j in visible]
            score = [
                q[i] @ (k[j] + np.array(keys[p])) / depth**0.5
                for j, p in zip(visible, place, strict=True)
            ]
            weight = np.exp(score) / np.exp(score).sum()
            weights[head, i, visible] = weight
            expected[i, columns] = sum(
                w * (v[j] + np.array(values[p]))
                for w, j, p in zip(weight, visible, place, strict=True)
            )
    expected = expected @ layer.output_projection.kernel.numpy()
    np.testing.assert_allclose(output[0], expected, atol=2e-6)
    np.testing.assert_allclose(scores[0], weights, atol=1e-6)


def test_a_decoding_step_equals_a_row_of_the_whole_sequence():
    """The step has only the last query and the keys up to it."""
    layer = RelativeAttention(2, 3, 3, max_relative_position=2)
    x = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
    whole = layer(x, x, attention_mask=causal_mask(5))
    keys, values = layer.project_memory(x)
    step = layer.attend(layer.project_query(x[:, 4:]), keys, values, None)
    np.testing.assert_allclose(step[:, 0], whole[:, 4], atol=1e-6)
