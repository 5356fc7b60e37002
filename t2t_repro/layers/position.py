"""Position signals (paper section 3.5)."""

from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_repro.layers.functional import Tensor
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


FORMULAS = {"sinusoid": sinusoid, "sinusoid_paper": sinusoid_paper}
"""`imported_options` adds those of other programs."""


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
