"""Reference implementations of the most expensive functions.

`t2t_repro.fast` has optimized implementations of those marked as `dispatched`.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from keras import ops

from t2t_repro.system.dispatch import dispatched

Tensor: TypeAlias = Any
"""A tensor of the Keras backend in use."""

Shape: TypeAlias = tuple[Any, ...]
"""Axis sizes, such as (batch, length, channels); None for an unknown size."""


@dispatched
def linear(x: Tensor, kernel: Tensor, bias: Tensor | None = None) -> Tensor:
    """Computes ``x W + b`` at each position.

    Args:
        x: float (..., channels).
        kernel: float (channels, units), W.
        bias: float (units,), b, or None.

    Returns:
        float (..., units).
    """
    y = ops.matmul(x, kernel)
    return y if bias is None else ops.add(y, bias)


@dispatched
def tied_logits(x: Tensor, table: Tensor) -> Tensor:
    """Computes the pre-softmax logits ``x E^T`` (section 3.4).

    Args:
        x: float (..., channels).
        table: float (rows, channels), E.

    Returns:
        float (..., rows).
    """
    return ops.matmul(x, ops.transpose(ops.cast(table, x.dtype)))


def embedding_lookup(table: Tensor, ids: Tensor) -> Tensor:
    """Looks up rows of an embedding table (section 3.4).

    Args:
        table: float (rows, channels).
        ids: int32 (...), row numbers.

    Returns:
        float (..., channels).
    """
    return ops.take(table, ids, axis=0)


@dispatched
def normalize(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Computes ``(x - mean) / sqrt(variance + epsilon) * scale + bias``.

    Args:
        x: float32 (..., channels); mean and variance are over the channels.
        scale: float32 (channels,).
        bias: float32 (channels,).
        epsilon: Constant that keeps the root positive.

    Returns:
        float32 (..., channels).
    """
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    return centred * ops.rsqrt(variance + epsilon) * scale + bias


@dispatched
def apply_layers(layers: Sequence[Any], x: Tensor, *context: Any) -> Tensor:
    """Applies the layers of a stack in sequence.

    Args:
        layers: Layers in the order of application.
        x: float (batch, length, d_model).
        *context: Further arguments of every layer, in the order of its `call`.

    Returns:
        float (batch, length, d_model).
    """
    for layer in layers:
        x = layer(x, *context)
    return x
