"""The attention weights of one sentence pair."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.transformer import Transformer

Weights = npt.NDArray[np.float32]


class PairAttention(NamedTuple):
    """The weights of every attention of a model for a source and a target.

    Each is float32 (layers, heads, queries, keys), and a query's row sums to 1. Row t
    of the decoder's maps is of the position that predicts target symbol t, which has
    read the symbols before t: column j of `decoder` is symbol j - 1, column 0 the
    vector of zeros before the first.
    """

    encoder: Weights  # Self-attention, source to source.
    decoder: Weights  # Self-attention, target to target.
    cross: Weights  # Attention of the decoder to the encoder, target to source.


def pair_attention(
    model: Transformer, source: Sequence[int], target: Sequence[int]
) -> PairAttention:
    """Computes the attention weights of a pair of ids, which end in EOS unless cut."""
    maps = attention_maps(model, tf.constant([source]), tf.constant([target]))

    def layers(side: str, attention: str) -> Weights:
        # The maps come in the order of the layers.
        names = fnmatch.filter(maps, f"{side}/*/{attention}")
        return np.stack([tf.cast(maps[name][0], tf.float32) for name in names])

    return PairAttention(
        encoder=layers("encoder", "self_attention"),
        decoder=layers("decoder", "self_attention"),
        cross=layers("decoder", "cross_attention"),
    )
