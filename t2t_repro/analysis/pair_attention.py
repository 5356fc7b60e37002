"""Attention weights of one sentence pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.models.attention_maps import attention_maps, stack_maps
from t2t_repro.models.transformer import Transformer

Weights = npt.NDArray[np.float32]


class PairAttention(NamedTuple):
    """Attention weights of all layers for a source and a target.

    Each array is float32 (layers, heads, queries, keys); the weights of a query sum to
    1. Query t of the decoder is the position that predicts target token t from the
    tokens before t. Therefore key j of `decoder` is target token j - 1, and key 0 is
    the zero vector at the start.
    """

    encoder: Weights  # Encoder self-attention.
    decoder: Weights  # Decoder self-attention.
    cross: Weights  # Cross-attention: target queries, source keys.


def pair_attention(
    model: Transformer, source: Sequence[int], target: Sequence[int]
) -> PairAttention:
    """Computes the attention weights of a pair of token sequences."""
    maps = attention_maps(model, tf.constant([source]), tf.constant([target]))
    return PairAttention(
        encoder=stack_maps(maps, "encoder", "self_attention")[0].numpy(),
        decoder=stack_maps(maps, "decoder", "self_attention")[0].numpy(),
        cross=stack_maps(maps, "decoder", "cross_attention")[0].numpy(),
    )
