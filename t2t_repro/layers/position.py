"""Position signals (paper section 3.5)."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer

MAX_TIMESCALE = 10_000.0


def sinusoid_rates(d_model: int) -> np.ndarray:
    """Returns the angles per position of `sinusoid`, radians, float64 (d_model // 2,).

    The divisor is d_model/2 - 1, so the last timescale is exactly 10,000
    (tensor2tensor common_attention.py:get_timing_signal_1d).
    """
    count = d_model // 2
    return np.exp(np.arange(count) * -np.log(MAX_TIMESCALE) / max(count - 1, 1))


def sinusoid(positions: Tensor, d_model: int) -> Tensor:
    """tensor2tensor's timing signal: all sines, then all cosines.

    # T2T: neither interleaved nor with the paper's divisor; its checkpoints need it.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels; an odd one ends in a zero column.

    Returns:
        float32 (..., length, d_model).
    """
    angle = _angles(positions, sinusoid_rates(d_model))
    nothing = ops.zeros_like(angle[..., : d_model % 2])
    return ops.concatenate([ops.sin(angle), ops.cos(angle), nothing], axis=-1)


def sinusoid_paper(positions: Tensor, d_model: int) -> Tensor:
    """The formula as the paper prints it: sines and cosines alternate.

    Args:
        positions: int32 (..., length), counted from 0.
        d_model: the number of channels, even.

    Returns:
        float32 (..., length, d_model): column 2i holds sin(pos / 10000^(2i/d_model)),
        column 2i+1 the cosine of the same angle.
    """
    angle = _angles(positions, MAX_TIMESCALE ** (-np.arange(0, d_model, 2) / d_model))
    pairs = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    # (..., length, d_model / 2, 2) -> (..., length, d_model)
    return ops.reshape(pairs, (*ops.shape(positions), d_model))


def _angles(positions: Tensor, rates: np.ndarray) -> Tensor:
    """Multiplies positions (..., length) by rates (d / 2,), radians per position."""
    places = ops.expand_dims(ops.cast(positions, "float32"), -1)
    return places * ops.convert_to_tensor(rates, "float32")


def sinusoid_halves(positions: Tensor, d_model: int) -> Tensor:
    """The paper's frequencies in tensor2tensor's order: all sines, then all cosines.

    Transformers and CTranslate2 give it to Marian's models (transformers
    modeling_marian.py:MarianSinusoidalPositionalEmbedding). Arguments and result are
    those of `sinusoid_paper`.
    """
    pairs = sinusoid_paper(positions, d_model)
    return ops.concatenate([pairs[..., 0::2], pairs[..., 1::2]], axis=-1)


def sinusoid_from_one(positions: Tensor, d_model: int) -> Tensor:
    """`sinusoid` of positions counted from 1, as OpenNMT-tf's (layers/position.py)."""
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
        formula: "sinusoid" (tensor2tensor's layout), "sinusoid_paper" or another key of
            `FORMULAS`.

    Raises:
        ValueError: there is no such formula.
    """

    def __init__(self, formula: str = "sinusoid", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if formula not in FORMULAS:
            raise ValueError(f"formula {formula!r}: use one of {', '.join(FORMULAS)}")
        self.formula = formula

    def call(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Adds the signal.

        Args:
            x: float (batch, length, d_model).
            positions: int32, (length,) or (batch, length); None: 0, 1, ...

        Returns:
            Like ``x``.
        """
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        return x + ops.cast(FORMULAS[self.formula](positions, x.shape[-1]), x.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class LearnedPosition(Layer):
    """Adds rows of a trained table; beyond it, nothing.

    Reference: paper table 3 row (E); tensor2tensor
    common_attention.py:add_positional_embedding (zeros past the table, no error).

    Args:
        max_position: rows of the table.
    """

    def __init__(self, max_position: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_position = max_position

    def build(self, x_shape: Shape) -> None:
        """Creates the table, Glorot-uniform as tensor2tensor's."""
        self.table = self.add_weight((self.max_position, x_shape[-1]), name="table")

    def call(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Adds the rows; arguments and result are those of `PositionalEncoding`."""
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        last = ops.minimum(positions, self.max_position - 1)
        rows = ops.cast(ops.take(self.table, last, axis=0), x.dtype)
        inside = ops.expand_dims(positions < self.max_position, -1)
        return x + ops.where(inside, rows, 0)
