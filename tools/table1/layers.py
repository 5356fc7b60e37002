"""Layers of table 1, as functions of n vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.fast.local_attention import (
    compute_windows,
    nearby_values,
    nearby_weights,
)
from t2t_repro.layers.attention import MultiHeadAttention, masked_softmax

Layer = Callable[[tf.Tensor], tf.Tensor]

RECURRENT = "recurrent"
CONVOLUTIONAL = "convolutional"


@dataclass(frozen=True)
class Kind:
    """A row of the paper's table 1.

    Attributes:
        name: The paper's name.
        complexity: Complexity per layer.
        sequential: Number of sequential operations.
        path: Maximum path length.
        doubled: Growth factors of the operations when n doubles and when d doubles.
    """

    name: str
    complexity: str
    sequential: str
    path: str
    doubled: tuple[int, int]


KINDS = {
    "self-attention": Kind("Self-Attention", "O(n² d)", "O(1)", "O(1)", (4, 2)),
    RECURRENT: Kind("Recurrent", "O(n d²)", "O(n)", "O(n)", (2, 4)),
    CONVOLUTIONAL: Kind("Convolutional", "O(k n d²)", "O(1)", "O(log_k n)", (2, 4)),
    "restricted": Kind(
        "Self-Attention (restricted)", "O(r n d)", "O(1)", "O(n/r)", (2, 2)
    ),
}
"""Rows of table 1, without the projections of queries, keys, values and output, which
add O(n d²) operations."""

WITH_PROJECTIONS = "multi-head, projected"
"""The package's attention layer with 8 heads and projections; not a row of table 1."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a layer.

    Attributes:
        d: Number of channels.
        kernel: Kernel size of convolutions.
        radius: Radius of restricted self-attention.
    """

    d: int
    kernel: int = 3
    radius: int = 8

    @property
    def window(self) -> int:
        """Number of positions in a restricted attention window (the paper's r)."""
        return 2 * self.radius + 1


def make_layer(kind: str, sizes: Sizes, unroll: bool = False) -> Layer:
    """Returns a layer with random weights: a function of float32 (batch, n, d).

    Args:
        kind: Key of `KINDS`, or `WITH_PROJECTIONS`.
        sizes: Sizes of the layer.
        unroll: Whether to unroll a recurrent layer, so that its graph has all steps.
    """
    d = sizes.d
    if kind == "self-attention":
        return _plain_attention
    if kind == "restricted":
        return lambda x: _restricted_attention(x, sizes.radius)
    if kind == WITH_PROJECTIONS:
        attention = MultiHeadAttention(8, d // 8, d // 8)
        attention.build((None, None, d), (None, None, d))
        return lambda x: attention(x, x)
    layer: Any = keras.layers.Conv1D(d, sizes.kernel, padding="same")
    if kind == RECURRENT:
        layer = keras.layers.SimpleRNN(d, return_sequences=True, unroll=unroll)
    layer.build((None, None, d))
    return lambda x: layer(x)


def _plain_attention(x: tf.Tensor) -> tf.Tensor:
    """Computes attention with one head; queries, keys and values are the input."""
    head = x[:, None]
    logits = tf.matmul(head * x.shape[-1] ** -0.5, head, transpose_b=True)
    weights = masked_softmax(logits, None)
    return tf.matmul(weights, head)[:, 0]


def _restricted_attention(x: tf.Tensor, radius: int) -> tf.Tensor:
    """Computes `_plain_attention` within a radius."""
    head = x[:, None]
    windows = compute_windows(x.shape[1], radius)
    weights = nearby_weights(head * x.shape[-1] ** -0.5, head, None, windows)
    return nearby_values(weights, head, windows)[:, 0]


def multiply_adds(kind: str, n: int, sizes: Sizes) -> int:
    """Returns the number of multiplications in a layer's matmuls over n positions."""
    d, windows = sizes.d, compute_windows(n, sizes.radius)
    return {
        "self-attention": 2 * n * n * d,
        RECURRENT: 2 * n * d * d,
        CONVOLUTIONAL: sizes.kernel * n * d * d,
        "restricted": 2 * int(windows.blocks) * windows.size * windows.width * d,
        WITH_PROJECTIONS: 4 * n * d * d + 2 * n * n * d,
    }[kind]


def example(n: int, d: int, batch: int = 1) -> tf.Tensor:
    """Draws a random input: float32 (batch, n, d)."""
    values = np.random.default_rng(1).normal(size=(batch, n, d))
    return tf.constant(values, tf.float32)
