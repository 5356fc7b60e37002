"""The KV cache drops unused slots."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.cached_decoder import KVCacheDecoder
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer

INPUTS = np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], np.int32)
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 3, "num_layers": 2}


def slots_after(decoder, steps, parents):
    """Returns the number of cache slots after steps that all select `parents`."""
    state = decoder.start(tf.constant(INPUTS))
    ids = tf.ones([2, decoder.beam_size], tf.int32)
    for index in range(steps):
        _, state = decoder.step(ids, tf.constant(index), state)
        state = decoder.select_beams(state, tf.constant([parents, parents]))
    layer = state.layers[0]
    assert layer.self_keys.shape[2] == layer.self_values.shape[2]
    return layer.self_keys.shape[2]


@pytest.mark.parametrize(
    ("settings", "parents", "steps", "slots"),
    [
        # 12 steps of three hypotheses, and free slots for 6 steps.
        ({}, [0, 1, 2], 13, 54),
        # All hypotheses share a past of 12 slots.
        ({}, [1, 1, 1], 13, 12 + 18),
        # The radius keeps 7 slots of the past, rounded up to a multiple of the beam, 3.
        ({"self_attention_radius": 6}, [1, 1, 1], 13, 9 + 18),
        # Relative attention keeps all slots.
        ({"max_relative_position": 2}, [1, 1, 1], 13, 54),
    ],
)
def test_drops_slots_that_no_hypothesis_attends_to(settings, parents, steps, slots):
    model = Transformer.from_hparams(HParams(**SIZES, **settings), 23)
    model.build()
    assert slots_after(KVCacheDecoder(model, 3), steps, parents) == slots
