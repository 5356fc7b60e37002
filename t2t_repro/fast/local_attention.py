"""Local self-attention in time proportional to length * r.

Paper section 4: "self-attention could be restricted to considering only a neighborhood
of size r in the input sequence centered around the respective output position". Each
position attends to `radius` positions on either side, so r is 2 * radius + 1.

Queries are divided into blocks of r. The window of a block contains the keys of the
same positions and of `radius` more on either side, at most 2 * r - 1 keys. A mask hides
the keys outside of each query's radius.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_repro.layers.attention import MASKED
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.local_attention import attend_locally as dispatched_attention


class Windows(NamedTuple):
    """Sizes of the query blocks and key windows of a sequence.

    Attributes:
        radius: Number of positions that a query attends to on either side.
        size: r, the number of queries in a block.
        width: Number of keys in a window.
        length: int (), positions of the sequence.
        blocks: int (), number of blocks; the last one is padded.
    """

    radius: int
    size: int
    width: int
    length: Tensor
    blocks: Tensor


def compute_windows(length: Tensor | int, radius: int) -> Windows:
    """Computes the sizes for a length, int (), and a radius of at least 1."""
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
        reference = dispatched_attention.reference
        return reference(query, key, value, mask, radius, drop)
    bias = None if mask is None else (1.0 - ops.cast(mask, "float32")) * MASKED
    windows = compute_windows(ops.shape(query)[2], radius)
    weights = drop(nearby_weights(query, key, bias, windows))
    return nearby_values(weights, value, windows)


def nearby_weights(
    query: Tensor, key: Tensor, bias: Tensor | None, windows: Windows
) -> Tensor:
    """Computes softmax(Q K^T + bias) within the radius of each query.

    Args:
        query: float (batch, heads, length, d_k), multiplied by d_k^-0.5.
        key: float (batch, heads, length, d_k).
        bias: float32 (batch or 1, 1, length or 1, length), masks more keys; or None.
        windows: The sizes.

    Returns:
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
    """Computes the weighted sums of values: float (batch, heads, length, d_v).

    Args:
        weights: float (batch, heads, blocks, size, width), from `nearby_weights`.
        value: float (batch, heads, length, d_v).
        windows: The sizes.
    """
    return join_blocks(ops.matmul(weights, key_windows(value, windows)), windows)


def query_blocks(query: Tensor, windows: Windows) -> Tensor:
    """Divides queries, (batch, heads, length, d), into zero-padded blocks.

    Returns float (batch, heads, blocks, size, d).
    """
    batch, heads, length, depth = ops.shape(query)
    padding = windows.blocks * windows.size - length
    padded = ops.pad(query, [[0, 0], [0, 0], [0, padding], [0, 0]])
    # (batch, heads, blocks * size, d) -> (batch, heads, blocks, size, d)
    shape = (batch, heads, windows.blocks, windows.size, depth)
    return ops.reshape(padded, shape)


def key_windows(key: Tensor, windows: Windows) -> Tensor:
    """Returns the keys of each block's window: (batch, heads, blocks, width, d)."""
    radius, size = windows.radius, windows.size
    padding = windows.blocks * size - windows.length + radius
    padded = ops.pad(key, [[0, 0], [0, 0], [radius, padding], [0, 0]])
    return ops.take(padded, _padded_positions(windows), axis=2)


def window_bias(bias: Tensor | None, windows: Windows) -> Tensor:
    """Computes the bias on the logits of the windows.

    It masks keys outside of a query's radius or of the sequence, and adds `bias`,
    float32 (batch or 1, 1, length or 1, length). Returns float32 (batch or 1, 1,
    blocks, size, width).
    """
    query = np.arange(windows.size)[:, None] + windows.radius
    near = np.abs(np.arange(windows.width) - query) <= windows.radius
    hidden = np.where(near, 0.0, MASKED).astype("float32")
    positions = _padded_positions(windows) - windows.radius
    beyond = ops.logical_or(positions < 0, positions >= windows.length)
    # (blocks, 1, width) + (size, width) -> (blocks, size, width)
    radius_bias = ops.expand_dims(ops.cast(beyond, "float32") * MASKED, 1) + hidden
    if bias is None:
        return radius_bias[None, None]
    own = ops.cast(bias, "float32")
    inside = ops.clip(positions, 0, windows.length - 1)
    if bias.shape[2] == 1:
        # (rows, 1, length) -> (rows, 1, blocks, width) -> (rows, 1, blocks, 1, width)
        return ops.expand_dims(ops.take(own[:, :, 0], inside, axis=2), 3) + radius_bias
    first = ops.arange(windows.blocks, dtype="int32")[:, None] * windows.size
    queries = first + np.arange(windows.size, dtype="int32")
    queries = ops.minimum(queries, windows.length - 1)
    # (blocks, size, 1) + (blocks, 1, width): indices into the flattened bias
    pairs = ops.expand_dims(queries * windows.length, 2) + ops.expand_dims(inside, 1)
    flat = ops.reshape(own, (ops.shape(own)[0], 1, windows.length * windows.length))
    return ops.take(flat, pairs, axis=2) + radius_bias


def join_blocks(blocks: Tensor, windows: Windows) -> Tensor:
    """Reverses `query_blocks`: returns float (batch, heads, length, d)."""
    batch, heads, count, size, depth = ops.shape(blocks)
    # (batch, heads, blocks, size, d) -> (batch, heads, blocks * size, d)
    joined = ops.reshape(blocks, (batch, heads, count * size, depth))
    return joined[:, :, : windows.length]


def _padded_positions(windows: Windows) -> Tensor:
    """Returns the padded position of each window's keys: int32 (blocks, width).

    The padded position of a key is its position plus `radius`.
    """
    first = ops.arange(windows.blocks, dtype="int32") * windows.size
    return ops.expand_dims(first, 1) + np.arange(windows.width, dtype="int32")
