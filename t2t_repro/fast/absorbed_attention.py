"""Cross-attention to a short memory that is folded into the projections.

``(x W_Q) K^T = x (W_Q K^T)`` and ``(A V) W_O = A (V W_O)``. If the memory is short,
``W_Q K^T`` and ``V W_O`` are smaller than W_Q and W_O, so each decoding step reads less
memory.
"""

import tensorflow as tf
from keras import ops

from t2t_repro.fast.xla_kernels import softmax
from t2t_repro.layers.attention import MultiHeadAttention


def fold(
    attention: MultiHeadAttention, keys: tf.Tensor, values: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Multiplies keys by the query projection, and values by the output projection.

    Args:
        attention: The layer with the projections.
        keys: float (batch, heads, sources, d_k), from `project_memory`.
        values: float (batch, heads, sources, d_v), from `project_memory`.

    Returns:
        Folded keys, float (batch, d_model, heads * sources), and folded values, float
        (batch, heads * sources, d_model).
    """
    heads, d_k, d_v = attention.num_heads, attention.d_k, attention.d_v
    query = ops.cast(attention.query.kernel, keys.dtype) * d_k**-0.5
    query = ops.reshape(query, (-1, heads, d_k))
    output = ops.cast(attention.output_projection.kernel, values.dtype)
    output = ops.reshape(output, (heads, d_v, -1))
    columns = heads * ops.shape(keys)[2]
    keys = ops.einsum("chd,bhsd->bchs", query, keys)
    values = ops.einsum("bhsd,hdc->bhsc", values, output)
    keys = ops.reshape(keys, (-1, query.shape[0], columns))
    return keys, ops.reshape(values, (-1, columns, output.shape[2]))


def attend(
    attention: MultiHeadAttention,
    x: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor,
    beam: int,
) -> tf.Tensor:
    """Attends to a folded memory; equal to the layer up to rounding.

    Args:
        attention: The layer that the memory was folded for.
        x: float (batch * beam, d_model), not projected.
        keys: float (batch, d_model, heads * sources), from `fold`.
        values: float (batch, heads * sources, d_model), from `fold`.
        bias: float32 (batch, 1, 1, sources), added to the logits.
        beam: Number of hypotheses per sentence.

    Returns:
        float (batch * beam, d_model).
    """
    logits = ops.matmul(ops.reshape(x, (-1, beam, x.shape[-1])), keys)
    columns = ops.shape(keys)[2]
    heads = (-1, beam, attention.num_heads, columns // attention.num_heads)
    weights = biased_softmax(ops.reshape(logits, heads), bias)
    y = ops.matmul(ops.reshape(weights, (-1, beam, columns)), values)
    return ops.reshape(y, (-1, x.shape[-1]))


def biased_softmax(logits: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """Computes softmax(logits + bias) in float32; returns the dtype of the logits."""
    if logits.shape[-1] == 1:
        return ops.ones_like(logits)
    weights = softmax(ops.cast(logits, "float32") + bias)
    return ops.cast(weights, logits.dtype)
