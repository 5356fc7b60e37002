"""Attention on flattened tokens, (batch * length, channels).

All other parts of a layer treat each token separately. A stack flattens its batch only
once, so that its graph has fewer operations and starts faster. Results do not change.
"""

import tensorflow as tf

from t2t_repro.layers.attention import MASKED, MultiHeadAttention
from t2t_repro.layers.functional import linear


def flatten_tokens(x: tf.Tensor) -> tf.Tensor:
    """Flattens all axes but the last: (..., channels) -> (rows, channels)."""
    return x if len(x.shape) == 2 else tf.reshape(x, [-1, x.shape[-1]])


def unflatten_tokens(x: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Restores the leading axes of x in rows computed from ``flatten_tokens(x)``."""
    if len(x.shape) == 2:
        return rows
    shape = tf.shape(x)
    if rows.shape[-1] != x.shape[-1]:
        shape = [-1, *tf.unstack(shape)[1:-1], rows.shape[-1]]
    return tf.reshape(rows, shape)


def split_heads(
    attention: MultiHeadAttention, rows: tf.Tensor, length: tf.Tensor | int
) -> tf.Tensor:
    """Splits rows: (batch * length, heads * d) -> (batch, heads, length, d)."""
    heads = attention.num_heads
    x = tf.reshape(rows, [-1, length, heads, rows.shape[-1] // heads])
    return tf.transpose(x, [0, 2, 1, 3])


def merge_heads(attention: MultiHeadAttention, heads: tf.Tensor) -> tf.Tensor:
    """Merges heads: (batch, heads, length, d_v) -> (batch * length, heads * d_v)."""
    rows = tf.transpose(heads, [0, 2, 1, 3])
    return tf.reshape(rows, [-1, attention.num_heads * attention.d_v])


def is_quantized(attention: MultiHeadAttention) -> bool:
    """Returns whether the output projection is quantized, or is being calibrated."""
    return attention.output_projection.matmul is not linear


def attend(
    attention: MultiHeadAttention,
    x: tf.Tensor,
    memory: tf.Tensor,
    lengths: tuple[tf.Tensor, tf.Tensor],
    mask: tf.Tensor | None,
) -> tf.Tensor:
    """Applies an attention layer to flattened tokens.

    Args:
        attention: The layer.
        x: float (batch * targets, d_model).
        memory: float (batch * sources, d_model).
        lengths: Numbers of target and source positions, int32 () each.
        mask: bool, broadcast to (batch, heads, targets, sources), or None.

    Returns:
        float (batch * targets, d_model).
    """
    targets, sources = lengths
    query = attention.query(x) * attention.d_k**-0.5
    query = split_heads(attention, query, targets)
    key = split_heads(attention, attention.key(memory), sources)
    value = split_heads(attention, attention.value(memory), sources)
    # On flattened tokens TensorFlow fuses the output projection's bias with the
    # residual sum, which rounds differently. `attend` projects unflattened tokens.
    if type(attention) is not MultiHeadAttention or attention.use_bias:
        return flatten_tokens(attention.attend(query, key, value, mask))
    if is_quantized(attention):
        logits = tf.matmul(query, key, transpose_b=True)
        if mask is not None:
            logits += (1.0 - tf.cast(mask, tf.float32)) * MASKED
        weights = width_independent_softmax(logits)
    else:
        weights = attention.drop(attention.attention_weights(query, key, mask))
    heads = attention.weighted_sum(weights, value)
    return attention.output_projection(merge_heads(attention, heads))


def width_independent_softmax(logits: tf.Tensor) -> tf.Tensor:
    """Computes a softmax whose bits do not depend on the number of masked columns.

    The last bit of a float32 sum depends on the number of columns. If the result is
    then quantized, that bit can change an int8 value and everything computed from it.
    Sums in float64, rounded to float32, avoid these differences.

    Args:
        logits: float32 (..., columns); masked columns are far below the others.

    Returns:
        float32 (..., columns).
    """
    return tf.cast(tf.nn.softmax(tf.cast(logits, tf.float64)), tf.float32)
