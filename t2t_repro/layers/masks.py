"""Attention biases: 0 where a position may be seen, -1e9 where it may not."""

from typing import NamedTuple

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor

MASKED = -1e9


class Packing(NamedTuple):
    """Where the examples of packed rows lie: several sentences share one row.

    Each field is int32 (batch, length). Segments count from 1 and are 0 at padding;
    positions begin at 0 again in each segment (tensor2tensor
    generator_utils.py:pack_examples; `t2t_repro.batches.packing` makes them).
    """

    inputs_segmentation: Tensor
    inputs_position: Tensor
    targets_segmentation: Tensor
    targets_position: Tensor


def non_padding(ids: Tensor, dtype: str = "float32") -> Tensor:
    """Marks the positions that hold a symbol.

    Args:
        ids: int32 (batch, length), 0 is PAD.
        dtype: the dtype of the answer.

    Returns:
        (batch, length), 1 at a symbol and 0 at padding.
    """
    return ops.cast(ops.not_equal(ids, 0), dtype)


def padding_bias(ids: Tensor) -> Tensor:
    """Hides padding keys.

    Source: tensor2tensor common_attention.py:attention_bias_ignore_padding.

    Args:
        ids: int32 (batch, source), 0 is PAD.

    Returns:
        float32 (batch, 1, 1, source), to be added to attention logits.
    """
    bias = (1.0 - non_padding(ids)) * MASKED
    return ops.expand_dims(ops.expand_dims(bias, 1), 1)


def causal_bias(length: Tensor | int) -> Tensor:
    """Hides later positions, for a decoder must not see what it predicts.

    Source: paper section 3.2.3.

    Args:
        length: int (), the number of target positions.

    Returns:
        float32 (1, 1, length, length), 0 on and below the diagonal.
    """
    position = ops.arange(length, dtype="int32")
    later = ops.expand_dims(position, 0) > ops.expand_dims(position, 1)
    bias = ops.cast(later, keras.backend.floatx()) * MASKED
    return ops.expand_dims(ops.expand_dims(bias, 0), 0)


def neighbourhood_bias(length: Tensor | int, radius: int) -> Tensor:
    """Hides the positions that are farther away than a radius.

    Source: paper section 4, restricted self-attention; its r is 2 * radius + 1.

    Args:
        length: int (), the number of positions.
        radius: positions that are seen on either side.

    Returns:
        float32 (1, 1, length, length), 0 where seen.
    """
    position = ops.arange(length, dtype="int32")
    distance = ops.expand_dims(position, 0) - ops.expand_dims(position, 1)
    bias = ops.cast(ops.abs(distance) > radius, keras.backend.floatx()) * MASKED
    return ops.expand_dims(ops.expand_dims(bias, 0), 0)


def segment_bias(segments: Tensor, key_segments: Tensor) -> Tensor:
    """Hides the keys of other segments of a packed row.

    Source: tensor2tensor common_attention.py:attention_bias_same_segment.

    Args:
        segments: int32 (batch, targets), of the queries.
        key_segments: int32 (batch, sources).

    Returns:
        float32 (batch, 1, targets, sources), to be added to attention logits.
    """
    differs = ops.expand_dims(segments, 2) != ops.expand_dims(key_segments, 1)
    return ops.expand_dims(ops.cast(differs, keras.backend.floatx()) * MASKED, 1)
