"""Restricted self-attention at a cost that grows with its neighbourhood.

Paper section 4: "self-attention could be restricted to considering only a neighborhood
of size r in the input sequence centered around the respective output position". Here a
radius says how far a position sees on either side, so that r is 2 * radius + 1.

Queries go in blocks of r. A block sees the keys of its own places and `radius` more on
either side, 2 * r - 1 at most, and a mask hides those beyond each query's own
neighbourhood: the work is proportional to length * r, not to the square of the length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_repro.layers.attention import MASKED
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.local_attention import attend_locally as formula


class Windows(NamedTuple):
    """How a sequence is cut for one radius.

    Attributes:
        radius: how far a position sees.
        size: r, the queries of a block.
        width: keys of a block's window.
        length: int (), positions of the sequence.
        blocks: int (), of queries; the last one is filled up.
    """

    radius: int
    size: int
    width: int
    length: Tensor
    blocks: Tensor


def windows_of(length: Tensor | int, radius: int) -> Windows:
    """Cuts a sequence of some length (int ()) for a radius of at least 1."""
    size = 2 * radius + 1
    return Windows(radius, size, size + 2 * radius, length, (length + size - 1) // size)


def attend_locally(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    radius: int,
    drop: Callable[[Tensor], Tensor],
) -> Tensor:
    """Replaces `layers.local_attention.attend_locally`."""
    for_all_heads = mask is None or (len(mask.shape) == 4 and mask.shape[1] == 1)
    if query.shape[2] == 1 or not for_all_heads:
        return formula.reference(query, key, value, mask, radius, drop)
    bias = None if mask is None else (1.0 - ops.cast(mask, "float32")) * MASKED
    windows = windows_of(ops.shape(query)[2], radius)
    weights = drop(nearby_weights(query, key, bias, windows))
    return nearby_values(weights, value, windows)


def nearby_weights(
    query: Tensor, key: Tensor, bias: Tensor | None, windows: Windows
) -> Tensor:
    """Computes softmax(Q K^T + bias) in each query's neighbourhood.

    The bias, float32 (batch or 1, 1, length or 1, length) or None, hides more. Returns
    float (batch, heads, blocks, size, width).
    """
    # (batch, heads, blocks, size, d) x (batch, heads, blocks, width, d)
    logits = ops.einsum(
        "bhnqd,bhnkd->bhnqk", query_blocks(query, windows), key_windows(key, windows)
    )
    hidden = ops.maximum(window_bias(bias, windows), MASKED)
    logits = ops.cast(logits, "float32") + hidden
    return ops.cast(ops.softmax(logits, axis=-1), query.dtype)


def nearby_values(weights: Tensor, value: Tensor, windows: Windows) -> Tensor:
    """Adds up float (batch, heads, length, d_v) by such weights, to the same shape."""
    return joined_blocks(ops.matmul(weights, key_windows(value, windows)), windows)


def query_blocks(query: Tensor, windows: Windows) -> Tensor:
    """(batch, heads, length, d) -> (batch, heads, blocks, size, d), with zeros."""
    batch, heads, length, depth = ops.shape(query)
    behind = windows.blocks * windows.size - length
    filled = ops.pad(query, [[0, 0], [0, 0], [0, behind], [0, 0]])
    # (batch, heads, blocks * size, d) -> (batch, heads, blocks, size, d)
    shape = (batch, heads, windows.blocks, windows.size, depth)
    return ops.reshape(filled, shape)


def key_windows(key: Tensor, windows: Windows) -> Tensor:
    """Gives each block the keys in reach: (batch, heads, blocks, width, d)."""
    radius, size = windows.radius, windows.size
    behind = windows.blocks * size - windows.length + radius
    padded = ops.pad(key, [[0, 0], [0, 0], [radius, behind], [0, 0]])
    return ops.take(padded, _places(windows), axis=2)


def window_bias(bias: Tensor | None, windows: Windows) -> Tensor:
    """Hides what a query does not see of its window.

    Returns float32 (batch or 1, 1, blocks, size, width).
    """
    query = np.arange(windows.size)[:, None] + windows.radius
    near = np.abs(np.arange(windows.width) - query) <= windows.radius
    hidden = np.where(near, 0.0, MASKED).astype("float32")
    places = _places(windows) - windows.radius
    beyond = ops.logical_or(places < 0, places >= windows.length)
    # (blocks, 1, width) + (size, width) -> (blocks, size, width)
    found = ops.expand_dims(ops.cast(beyond, "float32") * MASKED, 1) + hidden
    if bias is None:
        return found[None, None]
    own = ops.cast(bias, "float32")
    inside = ops.clip(places, 0, windows.length - 1)
    if bias.shape[2] == 1:
        # (rows, 1, length) -> (rows, 1, blocks, width) -> (rows, 1, blocks, 1, width)
        return ops.expand_dims(ops.take(own[:, :, 0], inside, axis=2), 3) + found
    first = ops.arange(windows.blocks, dtype="int32")[:, None] * windows.size
    queries = first + np.arange(windows.size, dtype="int32")
    queries = ops.minimum(queries, windows.length - 1)
    # (blocks, size, 1) + (blocks, 1, width): places in a flattened row of the bias
    pairs = ops.expand_dims(queries * windows.length, 2) + ops.expand_dims(inside, 1)
    flat = ops.reshape(own, (ops.shape(own)[0], 1, windows.length * windows.length))
    return ops.take(flat, pairs, axis=2) + found


def joined_blocks(blocks: Tensor, windows: Windows) -> Tensor:
    """Undoes `query_blocks`: (batch, heads, length, d)."""
    batch, heads, count, size, depth = ops.shape(blocks)
    # (batch, heads, blocks, size, d) -> (batch, heads, blocks * size, d)
    joined = ops.reshape(blocks, (batch, heads, count * size, depth))
    return joined[:, :, : windows.length]


def _places(windows: Windows) -> Tensor:
    """Returns where each window's keys lie among the padded ones.

    int32 (blocks, width); place p holds the key of position p - radius.
    """
    first = ops.arange(windows.blocks, dtype="int32") * windows.size
    return ops.expand_dims(first, 1) + np.arange(windows.width, dtype="int32")
