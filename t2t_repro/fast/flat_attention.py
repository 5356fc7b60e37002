"""Positions as the rows of a matrix.

Of all parts of a layer only attention knows which positions make a sentence; the others
treat each position alike. A stack lays the sentences of a batch one after the other,
once, and its layers hand on matrices: fewer operations in a graph, so that it starts
sooner, and nothing else changes.
"""

import tensorflow as tf

from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.functional import linear


def flatten_tokens(x: tf.Tensor) -> tf.Tensor:
    """Lays positions one after the other: (..., channels) -> (rows, channels)."""
    return x if len(x.shape) == 2 else tf.reshape(x, [-1, x.shape[-1]])


def unflatten_tokens(x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Undoes `flatten_tokens` for what was computed of the rows."""
    if len(x.shape) == 2:
        return rows
    shape = tf.shape(x)
    if rows.shape[-1] != x.shape[-1]:
        shape = [-1, *tf.unstack(shape)[1:-1], rows.shape[-1]]
    return tf.reshape(rows, shape)


def split_heads(
    attention: MultiHeadAttention, rows: tf.Tensor, length: tf.Tensor | int
) -> tf.Tensor:
    """(batch * length, heads * d) -> (batch, heads, length, d)."""
    heads = attention.num_heads
    x = tf.reshape(rows, [-1, length, heads, rows.shape[-1] // heads])
    return tf.transpose(x, [0, 2, 1, 3])


def merge_heads(attention: MultiHeadAttention, heads: tf.Tensor) -> tf.Tensor:
    """(batch, heads, length, d_v) -> (batch * length, heads * d_v)."""
    rows = tf.transpose(heads, [0, 2, 1, 3])
    return tf.reshape(rows, [-1, attention.num_heads * attention.d_v])


def is_quantized(attention: MultiHeadAttention) -> bool:
    """Whether the matmul after the attention rounds its rows, or is observed."""
    return attention.output_projection.matmul is not linear


def attend(
    attention: MultiHeadAttention,
    x: tf.Tensor,
    memory: tf.Tensor,
    lengths: tuple[tf.Tensor, tf.Tensor],
    mask: tf.Tensor | None,
    training: bool | None,
) -> tf.Tensor:
    """Does what calling the layer does.

    Args:
        attention: the layer.
        x: float (batch * targets, d_model).
        memory: float (batch * sources, d_model).
        lengths: int32 () each, targets and sources.
        mask: bool, broadcast to (batch, heads, targets, sources), or None.
        training: whether attention weights are dropped.

    Returns:
        float (batch * targets, d_model).
    """
    targets, sources = lengths
    query = attention.query(x) * attention.d_k**-0.5
    query = split_heads(attention, query, targets)
    key = split_heads(attention, attention.key(memory), sources)
    value = split_heads(attention, attention.value(memory), sources)
    # A projection with a bias that is fused with the residual sum rounds differently.
    if type(attention) is not MultiHeadAttention or attention.use_bias:
        return flatten_tokens(
            attention.attend(query, key, value, mask, training=training)
        )
    if is_quantized(attention):
        logits = tf.matmul(query, key, transpose_b=True)
        if mask is not None:
            logits += (1.0 - tf.cast(mask, tf.float32)) * MASKED
        weights = softmax_of_any_width(logits)
    else:
        weights = attention.drop(
            attention.attention_weights(query, key, mask), training=training
        )
    heads = attention.weighted_sum(weights, value)
    return attention.output_projection(merge_heads(attention, heads))


def softmax_of_any_width(logits: tf.Tensor) -> tf.Tensor:
    """Computes the same softmax, bit for bit, however much is hidden beside it.

    Sums in float32 depend on the number of columns in their last bit. Where a row is
    rounded to 8 bits next, some value lies so near to the middle of two steps that it
    goes the other way, and then others after it. Float64, rounded once, is the same.

    Args:
        logits: float32 (..., columns), what is hidden far below the others.

    Returns:
        Like the logits.
    """
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float64)), tf.float32)
