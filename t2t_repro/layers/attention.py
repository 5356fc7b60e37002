"""Scaled dot-product attention and its multi-head form (paper section 3.2)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dense import Dense
from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.few_rows import multiply
from t2t_repro.layers.masks import MASKED, neighbourhood_bias
from t2t_repro.layers.neighbourhood import nearby_values, nearby_weights, windows_of
from t2t_repro.layers.relative import RelativeTable, distances_within
from t2t_repro.layers.typing import Shape, Tensor


def attention_weights(query: Tensor, key: Tensor, bias: Tensor | None) -> Tensor:
    """Computes softmax(Q K^T + bias); the query comes already scaled.

    Args:
        query: float (batch, heads, targets, d_k), multiplied by d_k^-0.5.
        key: float (batch, heads, sources, d_k).
        bias: float, broadcast to (batch, heads, targets, sources), or None.

    Returns:
        float (batch, heads, targets, sources), in the dtype of the query; the
        softmax itself is computed in float32.
    """
    logits = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
    return _softmax(logits, bias)


def _softmax(logits: Tensor, bias: Tensor | None) -> Tensor:
    """Computes softmax(logits + bias) in float32, in the dtype of the logits."""
    dtype, logits = logits.dtype, ops.cast(logits, "float32")
    if bias is not None:
        # Keras casts what a layer is called with to the layer's own type. float16
        # makes -inf of a mask, and NaN of a row that sees nothing (filler rows).
        logits = logits + ops.maximum(ops.cast(bias, "float32"), MASKED)
    if logits.shape[-1] == 1:
        # The only weight is 1; Keras warns of a softmax over it.
        return ops.ones_like(logits, dtype=dtype)
    return ops.cast(ops.softmax(logits, axis=-1), dtype)


class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention with d_k and d_v of their own (paper section 3.2.2).

    Head i owns the columns i*d .. (i+1)*d - 1 of each projection, and no projection
    has a bias (tensor2tensor common_attention.py:multihead_attention).

    Args:
        num_heads: h, the number of heads.
        d_model: channels of the input and the output.
        d_k: channels of a query or a key, per head.
        d_v: channels of a value, per head.
        dropout: the share of attention weights dropped.
        max_relative_position: adds relative positions, clipped at this distance;
            0: none. For self-attention, and d_k = d_v.
        radius: positions that are seen on either side; 0: all. For self-attention.

    References:
        Attention Is All You Need, equation (1) and section 3.2.2; Shaw et al. 2018,
        equations (3) and (4).
    """

    def __init__(
        self,
        num_heads: int,
        d_model: int,
        d_k: int,
        d_v: int,
        dropout: float = 0.0,
        max_relative_position: int = 0,
        radius: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.radius = radius
        self.d_model = d_model
        self.d_k = d_k
        self.d_v = d_v
        self.query = Dense(num_heads * d_k, name="query", dtype=self.dtype_policy)
        self.key = Dense(num_heads * d_k, name="key", dtype=self.dtype_policy)
        self.value = Dense(num_heads * d_v, name="value", dtype=self.dtype_policy)
        self.output_projection = Dense(d_model, name="output", dtype=self.dtype_policy)
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)
        self.is_relative = max_relative_position > 0
        if self.is_relative:
            far, policy = max_relative_position, self.dtype_policy
            self.relative_keys = RelativeTable(
                far, d_k, name="relative_keys", dtype=policy
            )
            self.relative_values = RelativeTable(
                far, d_v, name="relative_values", dtype=policy
            )

    def build(self) -> None:
        """Creates the four projections, and the tables of relative positions."""
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, self.d_model))
        self.output_projection.build((None, None, self.num_heads * self.d_v))
        self.dropout.build()
        if self.is_relative:
            self.relative_keys.build()
            self.relative_values.build()
        self.built = True

    def split_heads(self, rows: Tensor, shape: Shape) -> Tensor:
        """(batch * length, heads * d) -> (batch, heads, length, d).

        Args:
            rows: float (batch * length, heads * d).
            shape: batch and length.
        """
        depth = rows.shape[-1] // self.num_heads
        x = ops.reshape(rows, (*shape, self.num_heads, depth))
        return ops.transpose(x, (0, 2, 1, 3))

    def project_query(self, x: Tensor, shape: Shape) -> Tensor:
        """Projects and scales queries.

        Args:
            x: float (batch * targets, d_model).
            shape: batch and targets.

        Returns:
            float (batch, heads, targets, d_k), multiplied by d_k^-0.5.
        """
        return self.split_heads(self.query(x) * self.d_k**-0.5, shape)

    def project_memory(self, memory: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
        """Projects keys and values.

        Args:
            memory: float (batch * sources, d_model).
            shape: batch and sources.

        Returns:
            keys, float (batch, heads, sources, d_k), and values,
            float (batch, heads, sources, d_v).
        """
        return (
            self.split_heads(self.key(memory), shape),
            self.split_heads(self.value(memory), shape),
        )

    def project_all(self, x: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
        """Projects queries, keys and values of self-attention by one product.

        The same as `project_query` and `project_memory`, for the steps of a search:
        there `few_rows.prepared` lays the kernels side by side once for all steps, and
        without it every call does.

        Args:
            x: float (batch * length, d_model).
            shape: batch and length.

        Returns:
            queries, float (batch, heads, length, d_k), multiplied by d_k^-0.5; keys,
            float (batch, heads, length, d_k); values, float (batch, heads, length,
            d_v).
        """
        joined = multiply(x, *self.joined_kernels())
        if self.d_k == self.d_v:
            heads = ops.reshape(joined, (*shape, 3, self.num_heads, self.d_k))
            query, key, value = ops.unstack(ops.transpose(heads, (2, 0, 3, 1, 4)), 3)
        else:
            ends = [self.num_heads * self.d_k, 2 * self.num_heads * self.d_k]
            query, key, value = (
                self.split_heads(rows, shape) for rows in ops.split(joined, ends, 1)
            )
        return query * self.d_k**-0.5, key, value

    def joined_kernels(self) -> list[keras.Variable]:
        """Returns what `project_all` multiplies by: float (d_model, heads * d) each."""
        return [self.query.kernel, self.key.kernel, self.value.kernel]

    def combine_heads(self, heads: Tensor) -> Tensor:
        """Concatenates the heads and projects them.

        Args:
            heads: float (batch, heads, targets, d_v).

        Returns:
            float (batch * targets, d_model).
        """
        # (batch, heads, targets, d_v) -> (batch * targets, heads * d_v)
        rows = ops.reshape(
            ops.transpose(heads, (0, 2, 1, 3)), (-1, self.num_heads * self.d_v)
        )
        return self.output_projection(rows)

    def weigh(
        self,
        query: Tensor,
        key: Tensor,
        bias: Tensor | None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Computes the attention weights.

        Args:
            query: float (batch, heads, targets, d_k), from `project_query`.
            key: float (batch, heads, sources, d_k), from `project_memory`.
            bias: float, broadcast to (batch, heads, targets, sources), or None.
            distances: int32 (targets, sources), the key's place less the query's;
                needed where relative positions are used, and there only.

        Returns:
            float (batch, heads, targets, sources).
        """
        if self.is_relative:
            relative = ops.einsum(
                "bhtd,tsd->bhts", query, self.relative_keys(distances)
            )
            relative = ops.cast(relative, "float32")
            bias = relative if bias is None else relative + bias
        return attention_weights(query, key, bias)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        distances: Tensor | None = None,
        seed: Tensor | None = None,
    ) -> Tensor:
        """Attends with queries, keys and values that are projected already.

        Args:
            query: float (batch, heads, targets, d_k).
            key: float (batch, heads, sources, d_k).
            value: float (batch, heads, sources, d_v).
            bias: float, broadcast to (batch, heads, targets, sources), or None.
            distances: as `weigh` takes them.
            seed: int32 (2,) for dropout, or None at inference.

        Returns:
            float (batch * targets, d_model).
        """
        weights = self.dropout(self.weigh(query, key, bias, distances), seed)
        heads = ops.matmul(weights, value)
        if self.is_relative:
            relative = self.relative_values(distances)
            heads = heads + ops.einsum("bhts,tsd->bhtd", weights, relative)
        return self.combine_heads(heads)

    def fold(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Multiplies keys by the queries' projection, and values by the output's.

        ``(x W_Q) K^T = x (W_Q K^T)`` and ``(A V) W_O = A (V W_O)``: for a short
        memory that is read by many steps these two are smaller than W_Q and W_O.

        Args:
            keys: float (batch, heads, sources, d_k), from `project_memory`.
            values: float (batch, heads, sources, d_v).

        Returns:
            float (batch, d_model, heads * sources) and
            (batch, heads * sources, d_model).
        """
        query = ops.cast(self.query.kernel, keys.dtype) * self.d_k**-0.5
        query = ops.reshape(query, (self.d_model, self.num_heads, self.d_k))
        output = ops.cast(self.output_projection.kernel, values.dtype)
        output = ops.reshape(output, (self.num_heads, self.d_v, self.d_model))
        columns = self.num_heads * ops.shape(keys)[2]
        keys = ops.einsum("chd,bhsd->bchs", query, keys)
        values = ops.einsum("bhsd,hdc->bhsc", values, output)
        return (
            ops.reshape(keys, (-1, self.d_model, columns)),
            ops.reshape(values, (-1, columns, self.d_model)),
        )

    def attend_folded(
        self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor, shape: Shape
    ) -> Tensor:
        """Attends to a memory that was folded; the same as `attend`, but for rounding.

        Args:
            x: float (batch * targets, d_model), not projected.
            keys: float (batch, d_model, heads * sources), from `fold`.
            values: float (batch, heads * sources, d_model).
            bias: float (batch, 1, 1, sources).
            shape: batch and targets.

        Returns:
            float (batch * targets, d_model).
        """
        logits = ops.matmul(ops.reshape(x, (*shape, self.d_model)), keys)
        columns = ops.shape(keys)[2]
        heads = (*shape, self.num_heads, columns // self.num_heads)
        weights = _softmax(ops.reshape(logits, heads), bias)
        y = ops.matmul(ops.reshape(weights, (*shape, columns)), values)
        return ops.reshape(y, (-1, self.d_model))

    def call(
        self,
        x: Tensor,
        memory: Tensor,
        bias: Tensor | None = None,
        seed: Tensor | None = None,
        *,
        shape: Shape,
        memory_shape: Shape,
    ) -> Tensor:
        """Attends from ``x`` to ``memory`` (the same tensor in self-attention).

        Args:
            x: float (batch * targets, d_model), a row for each position.
            memory: float (batch * sources, d_model).
            bias: float, broadcast to (batch, heads, targets, sources).
            seed: int32 (2,) for dropout, or None at inference.
            shape: batch and targets.
            memory_shape: batch and sources.

        Returns:
            float (batch * targets, d_model).
        """
        query = self.project_query(x, shape)
        key, value = self.project_memory(memory, memory_shape)
        if self.radius and not self.is_relative:
            return self._attend_nearby(query, key, value, bias, seed)
        bias, distances = self.restricted(bias, query), self.distances(query)
        return self.attend(query, key, value, bias, distances, seed)

    def distances(self, query: Tensor) -> Tensor | None:
        """Returns the distances of whole-sequence self-attention, if `weigh` needs any.

        Args:
            query: float (batch, heads, length, d_k).

        Returns:
            int32 (length, length), or None.
        """
        return distances_within(ops.shape(query)[2]) if self.is_relative else None

    def restricted(self, bias: Tensor | None, query: Tensor) -> Tensor | None:
        """Hides what lies beyond the radius, if there is one.

        Args:
            bias: float, broadcast to (batch, heads, length, length), or None.
            query: float (batch, heads, length, d_k).

        Returns:
            The bias that self-attention over the whole sequence adds.
        """
        if not self.radius:
            return bias
        beyond = neighbourhood_bias(ops.shape(query)[2], self.radius)
        return beyond if bias is None else bias + beyond

    def _attend_nearby(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        seed: Tensor | None,
    ) -> Tensor:
        """Does what `attend` does with a `restricted` bias, in linear time.

        Args and returns are those of `attend`.
        """
        windows = windows_of(ops.shape(query)[2], self.radius)
        weights = self.dropout(nearby_weights(query, key, bias, windows), seed)
        return self.combine_heads(nearby_values(weights, value, windows))
