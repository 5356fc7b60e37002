"""The reference implementations of the functions that take most of the time.

`t2t_repro.fast` has optimized implementations of those marked as `dispatched`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from keras import ops

from t2t_repro.system.dispatch import dispatched

Tensor: TypeAlias = Any
"""A tensor of whatever backend Keras runs on."""

Shape: TypeAlias = tuple[Any, ...]
"""Sizes, such as (batch, length, channels); None where one is not known."""


@dispatched
def linear(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W + b``, position by position.

    float (..., channels), (channels, units) and (units,) or None: float (..., units).
    """
    y = ops.matmul(x, kernel)
    return y if bias is None else ops.add(y, bias)


@dispatched
def tied_logits(x: Tensor, table: Tensor) -> Tensor:
    """``x E^T``: how like each row of a table a vector is (section 3.4).

    float (..., channels) and (rows, channels): float (..., rows).
    """
    return ops.matmul(x, ops.transpose(ops.cast(table, x.dtype)))


def embedding_lookup(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table, by their numbers (section 3.4).

    float (rows, channels) and int32 (...): float (..., channels).
    """
    return ops.take(table, ids, axis=0)


@dispatched
def normalize(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias``, over the last axis.

    float32 (..., channels), with scale and bias (channels,).
    """
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    return centred * ops.rsqrt(variance + epsilon) * scale + bias


@dispatched
def apply_layers(layers: Sequence[Any], x: Tensor, **context: Any) -> Tensor:
    """Applies the layers of a stack.

    Args:
        layers: from the first to the last.
        x: float (batch, length, d_model).
        **context: what each layer takes beside ``x``, by name.

    Returns:
        float (batch, length, d_model).
    """
    for layer in layers:
        x = layer(x, **context)
    return x
