"""Attention biases: 0 where a position may be seen, -1e9 where it may not."""

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor

MASKED = -1e9


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
