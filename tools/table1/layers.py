"""The layers of Table 1, as functions from n vectors to n vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_repro.fast.local_attention import nearby_values, nearby_weights, windows_of
from t2t_repro.layers.attention import MultiHeadAttention, masked_softmax

Layer = Callable[[tf.Tensor], tf.Tensor]

RECURRENT = "recurrent"
CONVOLUTIONAL = "convolutional"


@dataclass(frozen=True)
class Kind:
    """A row of the table: the paper's name and formulas.

    `doubled` is what the operations are multiplied by when n, and when d, doubles.
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
"""The rows of Table 1. Its counts are those of the attention alone: the projections
of queries, keys, values and output, O(n d²) more, are not in them."""

WITH_PROJECTIONS = "multi-head, projected"
"""Not a row of the paper's: the package's whole layer, 8 heads and projections."""


@dataclass(frozen=True)
class Sizes:
    """What a layer is made for: d channels, `kernel` positions of a convolution.

    Restricted self-attention has a `radius`: r = 2 * radius + 1.
    """

    d: int
    kernel: int = 3
    radius: int = 8

    @property
    def neighbourhood(self) -> int:
        """The paper's r, positions."""
        return 2 * self.radius + 1


def layer_of(kind: str, sizes: Sizes, unroll: bool = False) -> Layer:
    """Makes a layer with random weights, float32 (batch, n, d) to the same shape.

    `kind` is a key of `KINDS`, or `WITH_PROJECTIONS`; `unroll` writes a recurrent layer
    out step by step, for looking at its graph.
    """
    d = sizes.d
    if kind == "self-attention":
        return _attention_alone
    if kind == "restricted":
        return lambda x: _restricted_alone(x, sizes.radius)
    made: Any
    if kind == RECURRENT:
        made = keras.layers.SimpleRNN(d, return_sequences=True, unroll=unroll)
        made.build((None, None, d))
    elif kind == CONVOLUTIONAL:
        made = keras.layers.Conv1D(d, sizes.kernel, padding="same")
        made.build((None, None, d))
    elif kind == WITH_PROJECTIONS:
        made = MultiHeadAttention(8, d // 8, d // 8)
        made.build((None, None, d), (None, None, d))
        return lambda x: made(x, x)
    else:
        raise ValueError(f"there is no layer {kind!r}")
    return lambda x: made(x)


def _attention_alone(x: tf.Tensor) -> tf.Tensor:
    """Attends with one head of d channels: queries, keys and values are the input."""
    head = x[:, None]
    logits = tf.matmul(head * x.shape[-1] ** -0.5, head, transpose_b=True)
    weights = masked_softmax(logits, None)
    return tf.matmul(weights, head)[:, 0]


def _restricted_alone(x: tf.Tensor, radius: int) -> tf.Tensor:
    """Attends as `_attention_alone`, to the neighbourhood."""
    head = x[:, None]
    windows = windows_of(x.shape[1], radius)
    weights = nearby_weights(head * x.shape[-1] ** -0.5, head, None, windows)
    return nearby_values(weights, head, windows)[:, 0]


def multiply_adds(kind: str, n: int, sizes: Sizes) -> int:
    """Counts the multiplications of a layer's matrix products over n positions."""
    d = sizes.d
    if kind == "self-attention":
        return 2 * n * n * d
    if kind == RECURRENT:
        return 2 * n * d * d
    if kind == CONVOLUTIONAL:
        return sizes.kernel * n * d * d
    if kind == "restricted":
        windows = windows_of(n, sizes.radius)
        return 2 * int(windows.blocks) * windows.size * windows.width * d
    return 4 * n * d * d + 2 * n * n * d


def example(n: int, d: int, batch: int = 1) -> tf.Tensor:
    """Draws an input, float32 (batch, n, d)."""
    values = np.random.default_rng(1).normal(size=(batch, n, d))
    return tf.constant(values, tf.float32)
