"""A decoder of fixed shapes computes what whole targets do, compiled or not."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.static_decoder import StaticDecoder, split_step_weights
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer

VOCAB_SIZE = 23
INPUTS = np.array([[5, 6, 7, 1, 0]], np.int32)
BEAM, STEPS = 3, 8
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 3, "num_layers": 2}
# With d_k and d_v above the five places of the source it is folded into projections.
KINDS = {
    "folded": {"norm": "post", "d_k": 7, "d_v": 6},
    "folded, pre-norm": {"norm": "pre", "d_k": 6, "d_v": 8},
    "whole": {"norm": "post", "d_k": 5, "d_v": 9},
    "relative": {"norm": "pre", "position": "none", "max_relative_position": 2},
    "restricted": {"norm": "post", "self_attention_radius": 2},
}


@pytest.fixture(params=KINDS, scope="module")
def model(request):
    """A model whose every weight matters: norms and biases are random, too."""
    made = Transformer.from_hparams(
        HParams(**SIZES, **KINDS[request.param]), VOCAB_SIZE
    )
    made.build()
    generator = np.random.default_rng(1)
    for variable in made.trainable_variables:
        variable.assign(variable + generator.normal(0, 0.2, variable.shape))
    return made


@pytest.mark.medium
@pytest.mark.parametrize("compiled", [False, True])
def test_reordered_hypotheses_keep_their_own_past(model, compiled):
    """Random parents at each step, as a beam search would choose them."""
    decoder = StaticDecoder(model, BEAM, STEPS, split_step_weights(model))

    @tf.function(autograph=False, jit_compile=compiled)
    def step(before, index, state):
        return decoder.prepacked(tf.constant(1)).step(before, index, state)

    generator = np.random.default_rng(3)
    state = decoder.start(tf.constant(INPUTS))
    shapes = [tensor.shape for tensor in tf.nest.flatten(state)]
    hypotheses = np.zeros((1, BEAM, 0), np.int32)
    before = np.zeros((1, BEAM), np.int32)
    for index in range(STEPS):
        logits, state = step(tf.constant(before), tf.constant(index), state)
        for number in range(BEAM):
            # The last symbol of a target is never read, so any will do there.
            prefix = np.pad(hypotheses[:, number], ((0, 0), (0, 1)))
            whole = model({"inputs": INPUTS, "targets": prefix})[:, -1]
            np.testing.assert_allclose(logits[:, number], whole, atol=1e-5)
        parents = generator.integers(0, BEAM, (1, BEAM), np.int32)
        before = generator.integers(2, VOCAB_SIZE, (1, BEAM), np.int32)
        state = decoder.select_beams(state, tf.constant(parents))
        hypotheses = np.take_along_axis(hypotheses, parents[:, :, None], axis=1)
        hypotheses = np.concatenate([hypotheses, before[:, :, None]], axis=2)
        assert [tensor.shape for tensor in tf.nest.flatten(state)] == shapes


@pytest.mark.parametrize(("d_k", "d_v", "is_folded"), [(6, 6, True), (5, 6, False)])
def test_a_short_source_is_folded(d_k, d_v, is_folded):
    made = Transformer.from_hparams(HParams(**SIZES, d_k=d_k, d_v=d_v), VOCAB_SIZE)
    made.build()
    decoder = StaticDecoder(made, BEAM, STEPS, split_step_weights(made))
    cache = decoder.start(tf.constant(INPUTS)).layers[0]
    # 3 heads of 5 places each; or heads, places and d.
    folded = (1, 12, 3 * 5), (1, 3 * 5, 12)
    whole = (1, 3, 5, d_k), (1, 3, 5, d_v)
    shapes = tuple(cache.cross_keys.shape), tuple(cache.cross_values.shape)
    assert shapes == (folded if is_folded else whole)
