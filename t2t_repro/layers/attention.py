"""Scaled dot-product attention and its multi-head form (paper section 3.2)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer
from t2t_repro.layers.masks import causal_mask, combine_masks

MASKED = -1e9
"""Added to the logits of masked keys (tensor2tensor common_attention.py)."""


def masked_softmax(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Computes the softmax over the visible keys, in float32.

    Args:
        logits: float (batch, heads, targets, sources).
        mask: bool, broadcastable to the logits, true at visible keys; None: all keys
            are visible.

    Returns:
        Attention weights with the shape and dtype of the logits.
    """
    wide = ops.cast(logits, "float32")
    if mask is not None:
        wide = wide + (1.0 - ops.cast(mask, "float32")) * MASKED
    if logits.shape[-1] == 1:
        return ops.ones_like(logits)  # Keras warns about a softmax over one key.
    return ops.cast(ops.softmax(wide, axis=-1), logits.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class MultiHeadAttention(Layer):
    """Multi-head attention ``Concat(head_1, ..., head_h) W_O``.

    Head i uses columns i*d to (i+1)*d - 1 of each projection (tensor2tensor
    common_attention.py:multihead_attention). The call arguments are those of
    ``keras.layers.MultiHeadAttention``.

    Args:
        num_heads: Number of heads, h.
        d_k: Number of channels per head of the queries and keys.
        d_v: Number of channels per head of the values.
        d_model: Output channels; defaults to the channels of the query.
        dropout: Dropout rate of the attention weights.
        use_bias: Whether the four projections have biases; the paper's have none.

    References:
        Attention Is All You Need, equation (1) and section 3.2.2.
    """

    def __init__(
        self,
        num_heads: int,
        d_k: int,
        d_v: int,
        d_model: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads, self.d_k, self.d_v = num_heads, d_k, d_v
        self.d_model, self.dropout, self.use_bias = d_model, dropout, use_bias
        self.query = self._projection(num_heads * d_k, "query")
        self.key = self._projection(num_heads * d_k, "key")
        self.value = self._projection(num_heads * d_v, "value")
        self.drop = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def _projection(self, units: int, name: str) -> Dense:
        return Dense(units, self.use_bias, name=name, dtype=self.dtype_policy)

    def build(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        """Creates the four projections."""
        width = self.d_model or query_shape[-1]
        self.output_projection = self._projection(width, "output")
        self.query.build(query_shape)
        self.key.build(key_shape or value_shape)
        self.value.build(value_shape)
        self.output_projection.build((*query_shape[:-1], self.num_heads * self.d_v))
        self.drop.build(query_shape)

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the query's shape, with d_model channels if d_model is given."""
        *positions, channels = super().compute_output_shape(*shapes, **named)
        return (*positions, self.d_model or channels)

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        attention_mask: Tensor | None = None,
        use_causal_mask: bool = False,
        return_attention_scores: bool = False,
        training: bool | None = None,
        value_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attends from the query positions to the value positions.

        Args:
            query: float (batch, targets, channels).
            value: float (batch, sources, channels).
            key: float (batch, sources, channels); defaults to the value.
            attention_mask: bool, true at visible keys, broadcastable to (batch,
                targets, sources) or, with rank 4, (batch, heads, targets, sources).
            use_causal_mask: Whether to hide later positions as well.
            return_attention_scores: Whether to return the attention weights as well.
            training: Whether to apply dropout to the attention weights; Keras passes it
                on to the dropout.
            value_mask: bool (batch, sources), set by Keras from the value's mask.
            key_mask: bool (batch, sources), set by Keras from the key's mask.

        Returns:
            float (batch, targets, d_model). With `return_attention_scores`, a tuple of
            this and the attention weights before dropout, float (batch, heads, targets,
            sources).
        """
        mask = attention_mask
        if mask is not None and len(mask.shape) == 3:
            mask = ops.expand_dims(mask, 1)  # One mask for all heads.
        for each in (value_mask, key_mask):
            if each is not None:
                mask = combine_masks(mask, ops.cast(each, "bool")[:, None, None])
        if use_causal_mask:
            mask = combine_masks(mask, causal_mask(ops.shape(query)[1])[None])
        queries = self.project_query(query)
        keys, values = self.project_memory(value, key)
        y = self.attend(queries, keys, values, mask)
        if return_attention_scores:
            return y, self.attention_weights(queries, keys, mask)
        return y

    def project_query(self, x: Tensor) -> Tensor:
        """Computes ``x W_Q / sqrt(d_k)`` per head: (batch, heads, length, d_k)."""
        return self.split_heads(self.query(x) * self.d_k**-0.5)

    def project_memory(
        self, value: Tensor, key: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Computes keys (batch, heads, length, d_k) and values (..., d_v) per head."""
        keys = self.key(value if key is None else key)
        return self.split_heads(keys), self.split_heads(self.value(value))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        **where: Tensor,
    ) -> Tensor:
        """Computes ``softmax(Q K^T / sqrt(d_k)) V`` per head and applies ``W_O``.

        Args:
            query: float (batch, heads, targets, d_k), from `project_query`.
            key: float (batch, heads, sources, d_k), from `project_memory`.
            value: float (batch, heads, sources, d_v), from `project_memory`.
            mask: bool, broadcastable to (batch, heads, targets, sources), or None.
            **where: Further arguments of `attention_weights` and `weighted_sum`, such
                as the distances in subclasses.

        Returns:
            float (batch, targets, d_model).
        """
        weights = self.drop(self.attention_weights(query, key, mask, **where))
        return self.merge_heads(self.weighted_sum(weights, value, **where))

    def attention_weights(
        self, query: Tensor, key: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Computes the attention weights, float (batch, heads, targets, sources)."""
        return masked_softmax(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))), mask)

    def weighted_sum(self, weights: Tensor, value: Tensor) -> Tensor:
        """Sums the values by their weights: (batch, heads, targets, d_v)."""
        return ops.matmul(weights, value)

    def split_heads(self, x: Tensor) -> Tensor:
        """Reshapes (batch, length, heads * d) to (batch, heads, length, d)."""
        shape = (-1, ops.shape(x)[1], self.num_heads, x.shape[-1] // self.num_heads)
        return ops.transpose(ops.reshape(x, shape), (0, 2, 1, 3))

    def merge_heads(self, heads: Tensor) -> Tensor:
        """Concatenates the heads and applies ``W_O``.

        (batch, heads, length, d_v) -> (batch, length, d_model).
        """
        x = ops.transpose(heads, (0, 2, 1, 3))
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads * self.d_v))
        return self.output_projection(x)
