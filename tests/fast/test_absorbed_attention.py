"""Attention to a folded memory equals the layer's attention."""

import numpy as np
import pytest

from t2t_repro.fast.absorbed_attention import attend, fold
from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.masks import padding_mask


@pytest.mark.parametrize(("d_k", "d_v"), [(4, 5), (4, 4)])
def test_folded_attention_equals_the_layer(d_k, d_v):
    generator = np.random.default_rng(0)
    # Two sentences with three hypotheses each.
    x = generator.normal(size=(2, 3, 12)).astype("float32")
    memory = generator.normal(size=(2, 6, 12)).astype("float32")
    mask = padding_mask(np.array([[5, 6, 7, 8, 9, 1], [5, 6, 7, 1, 0, 0]]))
    layer = MultiHeadAttention(2, d_k, d_v)
    expected = layer(x, memory, attention_mask=mask)
    keys, values = fold(layer, *layer.project_memory(memory))
    assert (keys.shape, values.shape) == ((2, 12, 2 * 6), (2, 2 * 6, 12))
    bias = np.where(mask, 0, MASKED).astype("float32")[:, None]
    result = attend(layer, x.reshape(6, 12), keys, values, bias, beam=3)
    np.testing.assert_allclose(result, np.reshape(expected, (6, 12)), atol=1e-6)
