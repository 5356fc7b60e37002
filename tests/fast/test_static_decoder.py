"""The compiled static decoder computes the logits of the whole model."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.cached_decoder import KVCacheDecoder
from t2t_repro.fast.static_decoder import StaticDecoder, transpose_step_weights
from tests import tiny

VOCAB_SIZE = 23
INPUTS = np.array([[5, 6, 7, 1, 0]], np.int32)
BEAM, STEPS = 3, 8
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 3, "num_layers": 2}
# The memory of a five-token source is folded if both d_k and d_v are greater than five.
KINDS = {
    "folded": {"norm": "pre", "d_k": 6, "d_v": 8},
    "relative": {"norm": "pre", "position": "none", "max_relative_position": 2},
    "local": {"norm": "post", "d_k": 5, "d_v": 9, "self_attention_radius": 2},
}


@pytest.fixture(params=KINDS, scope="module")
def model(request):
    """Returns a model with random weights, including norms and biases."""
    return tiny.random_model(VOCAB_SIZE, 0.2, **SIZES, **KINDS[request.param])


def static_decoder(model):
    memory = KVCacheDecoder(model, BEAM).read(tf.constant(INPUTS))
    return StaticDecoder(model, BEAM, STEPS, transpose_step_weights(model), memory)


@pytest.mark.medium
def test_reordered_hypotheses_keep_their_own_past(model):
    """Selects random parents at each step, in place of a beam search."""
    decoder = static_decoder(model)

    @tf.function(autograph=False, jit_compile=True)
    def step(before, index, state):
        return decoder.step(before, index, state)

    generator = np.random.default_rng(3)
    state = decoder.start(tf.constant(INPUTS))
    shapes = [tensor.shape for tensor in tf.nest.flatten(state)]
    hypotheses = np.zeros((1, BEAM, 0), np.int32)
    before = np.zeros((1, BEAM), np.int32)
    for index in range(STEPS):
        logits, state = step(tf.constant(before), tf.constant(index), state)
        # The last token of a target is never read, so it may be padding.
        targets = np.pad(hypotheses[0], ((0, 0), (0, 1)))
        inputs = np.repeat(INPUTS, BEAM, axis=0)
        whole = model({"inputs": inputs, "targets": targets})[:, -1]
        np.testing.assert_allclose(logits[0], whole, atol=1e-5)
        parents = generator.integers(0, BEAM, (1, BEAM), np.int32)
        before = generator.integers(2, VOCAB_SIZE, (1, BEAM), np.int32)
        state = decoder.select_beams(state, tf.constant(parents))
        hypotheses = np.take_along_axis(hypotheses, parents[:, :, None], axis=1)
        hypotheses = np.concatenate([hypotheses, before[:, :, None]], axis=2)
        assert [tensor.shape for tensor in tf.nest.flatten(state)] == shapes


@pytest.mark.parametrize(("d_k", "d_v", "is_folded"), [(6, 6, True), (4, 6, False)])
def test_folds_a_short_source(d_k, d_v, is_folded):
    model = tiny.random_model(VOCAB_SIZE, **SIZES, d_k=d_k, d_v=d_v)
    decoder = static_decoder(model)
    cache = decoder.start(tf.constant(INPUTS)).layers[0]
    # 3 heads and 5 source tokens.
    folded = (1, 12, 3 * 5), (1, 3 * 5, 12)
    whole = (1, 3, d_k, 5), (1, 3, 5, d_v)
    shapes = tuple(cache.cross_keys.shape), tuple(cache.cross_values.shape)
    assert shapes == (folded if is_folded else whole)
