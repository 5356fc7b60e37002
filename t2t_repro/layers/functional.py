"""The reference implementations of the functions that take most of the time.

`t2t_repro.fast` has optimized implementations of those marked as `dispatched`.
"""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import keras
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


def relu(x: Tensor) -> Tensor:
    """``max(0, x)`` (section 3.3), of float of any shape."""
    return ops.relu(x)


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


def entropy_of_smoothing(label_smoothing: float, vocab_size: int) -> float:
    """Returns the entropy of the smoothed distribution, in nats.

    Source: tensor2tensor common_layers.py:smoothing_cross_entropy, with its 1e-20
    inside the logarithm.
    """
    true, other = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    return -true * math.log(true) - label_smoothing * math.log(other + 1e-20)


@dispatched
def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float
) -> Tensor:
    """Cross entropy with label smoothing (section 5.4), in nats.

    The true symbol gets 1 - label_smoothing, each of the V - 1 others, PAD among them,
    an equal part of the rest. The entropy of that distribution is subtracted, so that
    the best loss is 0.

    Args:
        logits: float32 (..., V).
        targets: int32 (...).
        label_smoothing: from 0 to less than 1.

    Returns:
        float32 (...).
    """
    vocab_size = logits.shape[-1]
    true, other = 1.0 - label_smoothing, label_smoothing / (vocab_size - 1)
    entropy = entropy_of_smoothing(label_smoothing, vocab_size)
    log_probs = ops.log_softmax(logits, axis=-1)
    of_target = ops.take_along_axis(log_probs, ops.expand_dims(targets, -1), axis=-1)
    of_all = ops.sum(log_probs, axis=-1)
    return -(true - other) * ops.squeeze(of_target, -1) - other * of_all - entropy


@dispatched
def apply_layers(
    layers: Sequence[keras.layers.Layer], x: Tensor, **context: Any
) -> Tensor:
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
