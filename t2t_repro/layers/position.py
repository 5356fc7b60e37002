"""Position signals (paper section 3.5)."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_repro.layers.typing import Tensor

MAX_TIMESCALE = 10_000.0


def sinusoid_rates(d_model: int) -> np.ndarray:
    """Returns the angular rates of tensor2tensor's timing signal.

    The divisor is d_model/2 - 1, so the last timescale is exactly 10,000
    (tensor2tensor common_attention.py:get_timing_signal_1d).

    Returns:
        float32 (d_model // 2,), radians per position.
    """
    count = d_model // 2
    step = np.log(MAX_TIMESCALE) / max(count - 1, 1)
    return np.exp(np.arange(count) * -step).astype("float32")


def sinusoid(positions: Tensor, d_model: int) -> Tensor:
    """Tensor2tensor's timing signal: all sines, then all cosines.

    # T2T: neither interleaved nor with the paper's divisor; its checkpoints need it.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels; an odd one ends in a zero column.

    Returns:
        float32 (..., length, d_model).
    """
    positions = ops.cast(positions, "float32")
    angle = ops.expand_dims(positions, -1) * sinusoid_rates(d_model)
    parts = [ops.sin(angle), ops.cos(angle)]
    if d_model % 2:
        parts.append(ops.zeros_like(angle[..., :1]))
    return ops.concatenate(parts, axis=-1)


def sinusoid_paper(positions: Tensor, d_model: int) -> Tensor:
    """The formula as printed in the paper's section 3.5: sines and cosines alternate.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels, even.

    Returns:
        float32 (..., length, d_model): column 2i holds sin(pos / 10000^(2i/d_model)),
        column 2i+1 the cosine of the same angle.
    """
    rates = MAX_TIMESCALE ** (-np.arange(0, d_model, 2) / d_model)
    positions = ops.cast(positions, "float32")
    angle = ops.expand_dims(positions, -1) * rates.astype("float32")
    pairs = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    # (..., length, d_model / 2, 2) -> (..., length, d_model)
    return ops.reshape(pairs, (*ops.shape(positions), d_model))


class LearnedPosition(keras.layers.Layer):
    """A trained table of positions; beyond it the signal is zero.

    Reference: paper table 3 row (E); tensor2tensor
    common_attention.py:add_positional_embedding (zeros past the table, no error).

    Args:
        max_position: rows of the table.
        d_model: the number of channels.
    """

    def __init__(self, max_position: int, d_model: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_position = max_position
        self.d_model = d_model

    def build(self) -> None:
        """Creates the table, Glorot-uniform as tensor2tensor's."""
        self.table = self.add_weight(
            name="table",
            shape=(self.max_position, self.d_model),
            initializer="glorot_uniform",
        )
        self.built = True

    def call(self, positions: Tensor) -> Tensor:
        """Looks positions up.

        Args:
            positions: int32 (..., length).

        Returns:
            float (..., length, d_model).
        """
        inside = ops.cast(positions < self.max_position, self.compute_dtype)
        rows = ops.take(
            self.table, ops.minimum(positions, self.max_position - 1), axis=0
        )
        return ops.cast(rows, self.compute_dtype) * ops.expand_dims(inside, -1)
