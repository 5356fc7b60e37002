"""Caches give up what no hypothesis sees any more."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.fast.cached_decoder import KVCacheDecoder
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer

INPUTS = np.array([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]], np.int32)
SIZES = {"d_model": 12, "d_ff": 20, "num_heads": 3, "num_layers": 2}


def columns_after(decoder, steps, parents):
    """Returns how many columns caches have if hypotheses always came of `parents`."""
    state = decoder.start(tf.constant(INPUTS))
    ids = tf.ones([2, decoder.beam_size], tf.int32)
    for index in range(steps):
        _, state = decoder.step(ids, tf.constant(index), state)
        state = decoder.select_beams(state, tf.constant([parents, parents]))
    layer = state.layers[0]
    assert layer.self_keys.shape[2] == layer.self_values.shape[2]
    return layer.self_keys.shape[2]


@pytest.mark.parametrize(
    ("settings", "parents", "steps", "columns"),
    [
        # Twice six steps of three hypotheses, and the six that follow.
        ({}, [0, 1, 2], 13, 54),
        # One past, of twelve columns, for all three.
        ({}, [1, 1, 1], 13, 12 + 18),
        # One past of seven columns is seen; caches hold whole steps, 9 columns.
        ({"self_attention_radius": 6}, [1, 1, 1], 13, 9 + 18),
        ({"max_relative_position": 2}, [1, 1, 1], 13, 54),
    ],
)
def test_columns_that_nobody_sees_are_given_up(settings, parents, steps, columns):
    model = Transformer.from_hparams(HParams(**SIZES, **settings), 23)
    model.build()
    assert columns_after(KVCacheDecoder(model, 3), steps, parents) == columns
