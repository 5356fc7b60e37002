"""Positional encodings (paper section 3.5)."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer

MAX_TIMESCALE = 10_000.0


def sinusoid_rates(d_model: int) -> np.ndarray:
    """Returns the angular frequencies of `sinusoid`.

    The divisor is d_model/2 - 1, so the last timescale is exactly 10,000
    (tensor2tensor common_attention.py:get_timing_signal_1d).

    Returns:
        float64 (d_model // 2,), radians per position.
    """
    count = d_model // 2
    return np.exp(np.arange(count) * -np.log(MAX_TIMESCALE) / max(count - 1, 1))


def sinusoid(positions: Tensor, d_model: int) -> Tensor:
    """Computes tensor2tensor's timing signal: all sines, then all cosines.

    # T2T: the paper interleaves sines and cosines and has a different divisor,
    but tensor2tensor's checkpoints require this signal.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: Number of channels; if it is odd, the last channel is zero.

    Returns:
        float32 (..., length, d_model).
    """
    angle = _angles(positions, sinusoid_rates(d_model))
    zeros = ops.zeros_like(angle[..., : d_model % 2])
    return ops.concatenate([ops.sin(angle), ops.cos(angle), zeros], axis=-1)


def sinusoid_paper(positions: Tensor, d_model: int) -> Tensor:
    """Computes the paper's formula, in which sines and cosines alternate.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: Number of channels, even.

    Returns:
        float32 (..., length, d_model): sin(pos / 10000^(2i/d_model)) in channel 2i, the
        cosine of the same angle in channel 2i+1.
    """
    angle = _angles(positions, MAX_TIMESCALE ** (-np.arange(0, d_model, 2) / d_model))
    pairs = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    # (..., length, d_model / 2, 2) -> (..., length, d_model)
    return ops.reshape(pairs, (*ops.shape(positions), d_model))


def _angles(positions: Tensor, rates: np.ndarray) -> Tensor:
    """Multiplies positions (..., length) by angular frequencies (d / 2,)."""
    column = ops.expand_dims(ops.cast(positions, "float32"), -1)
    return column * ops.convert_to_tensor(rates, "float32")


def sinusoid_halves(positions: Tensor, d_model: int) -> Tensor:
    """Computes the paper's formula with all sines before all cosines.

    Transformers and CTranslate2 use this signal for Marian's models (transformers
    modeling_marian.py:MarianSinusoidalPositionalEmbedding).

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: Number of channels, even.

    Returns:
        float32 (..., length, d_model).
    """
    pairs = sinusoid_paper(positions, d_model)
    return ops.concatenate([pairs[..., 0::2], pairs[..., 1::2]], axis=-1)


def sinusoid_from_one(positions: Tensor, d_model: int) -> Tensor:
    """Computes `sinusoid` of positions counted from 1 (opennmt layers/position.py)."""
    return sinusoid(positions + 1, d_model)


FORMULAS = {
    "sinusoid": sinusoid,
    "sinusoid_paper": sinusoid_paper,
    "sinusoid_halves": sinusoid_halves,
    "sinusoid_from_one": sinusoid_from_one,
}


@keras.saving.register_keras_serializable("t2t_repro")
class PositionalEncoding(Layer):
    """Adds sines and cosines of different frequencies.

    Args:
        formula: Name of a function in `FORMULAS`: "sinusoid" (tensor2tensor),
            "sinusoid_paper", "sinusoid_halves" (Transformers) or "sinusoid_from_one"
            (OpenNMT-tf).

    Raises:
        ValueError: The formula is unknown.
    """

    def __init__(self, formula: str = "sinusoid", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if formula not in FORMULAS:
            raise ValueError(f"formula {formula!r}: use one of {', '.join(FORMULAS)}")
        self.formula = formula

    def call(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Adds the encoding of each position.

        Args:
            x: float (batch, length, d_model).
            positions: int32, (length,) or (batch, length); defaults to 0, 1, ...

        Returns:
            float (batch, length, d_model).
        """
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        return x + ops.cast(FORMULAS[self.formula](positions, x.shape[-1]), x.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class LearnedPosition(Layer):
    """Adds one row of a trained table to each position, and zeros beyond the table.

    Args:
        max_position: Number of rows.

    References:
        Attention Is All You Need, table 3 row (E); tensor2tensor
        common_attention.py:add_positional_embedding.
    """

    def __init__(self, max_position: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_position = max_position

    def build(self, x_shape: Shape) -> None:
        """Creates the table, Glorot-uniform as in tensor2tensor."""
        self.table = self.add_weight((self.max_position, x_shape[-1]), name="table")

    def call(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Adds the rows; see `PositionalEncoding.call`."""
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        last = ops.minimum(positions, self.max_position - 1)
        rows = ops.cast(ops.take(self.table, last, axis=0), x.dtype)
        inside = ops.expand_dims(positions < self.max_position, -1)
        return x + ops.where(inside, rows, 0)
