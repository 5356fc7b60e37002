"""Relative positions in self-attention (Shaw et al. 2018, arXiv:1803.02155)."""

import functools
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.attention import MultiHeadAttention, masked_softmax
from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer
from t2t_repro.layers.local_attention import compute_distances, mask_distant_keys


class RelativeTable(Layer):
    """Table of one trained vector per distance from -R to R, shared by all heads.

    Larger distances use the vector of R or -R (tensor2tensor
    common_attention.py:_generate_relative_positions_embeddings).

    Args:
        max_distance: Largest distance, R.
        depth: Number of channels per head.
    """

    def __init__(self, max_distance: int, depth: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_distance = max_distance
        self.depth = depth

    def build(self, input_shape: object = None) -> None:
        """Creates the table, Glorot-uniform."""
        shape = (2 * self.max_distance + 1, self.depth)
        self.table = self.add_weight(shape, "glorot_uniform", name="table")

    def call(self, distances: Tensor) -> Tensor:
        """Looks up int32 (targets, sources): float (targets, sources, depth)."""
        far = self.max_distance
        rows = ops.clip(distances, -far, far) + far
        return ops.cast(ops.take(self.table, rows, axis=0), self.compute_dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class RelativeAttention(MultiHeadAttention):
    """Self-attention with trained vectors for the distances between queries and keys.

    Args:
        num_heads: Number of heads, h.
        d_k: Number of channels per head of the queries and keys.
        d_v: Number of channels per head of the values, equal to `d_k`.
        max_relative_position: Distance from which all distances share a vector.
        radius: Number of visible positions on either side; 0: all positions.
        **kwargs: Further arguments of `MultiHeadAttention`.

    References:
        Shaw et al. 2018, equations (3) and (4).
    """

    def __init__(
        self,
        num_heads: int,
        d_k: int,
        d_v: int,
        *,
        max_relative_position: int,
        radius: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, d_k, d_v, **kwargs)
        self.max_relative_position = far = max_relative_position
        self.radius = radius
        table = functools.partial(RelativeTable, far, dtype=self.dtype_policy)
        self.relative_keys = table(d_k, name="relative_keys")
        self.relative_values = table(d_v, name="relative_values")

    def build(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        """Creates the projections and both tables."""
        super().build(query_shape, value_shape, key_shape)
        self.relative_keys.build()
        self.relative_values.build()

    def attention_weights(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Computes the attention weights (equation (4)).

        Args:
            query: float (batch, heads, targets, d_k).
            key: float (batch, heads, sources, d_k).
            mask: bool, broadcastable to (batch, heads, targets, sources), or None.
            distances: int32 (targets, sources); defaults to those between queries and
                keys.

        Returns:
            float (batch, heads, targets, sources).
        """
        if distances is None:
            distances = compute_distances(query, key)
        if self.radius:
            mask = mask_distant_keys(mask, distances, self.radius)
        logits = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        relative = ops.einsum("bhtd,tsd->bhts", query, self.relative_keys(distances))
        logits = ops.cast(logits, "float32") + ops.cast(relative, "float32")
        return ops.cast(masked_softmax(logits, mask), query.dtype)

    def weighted_sum(
        self, weights: Tensor, value: Tensor, distances: Tensor | None = None
    ) -> Tensor:
        """Sums values and distance vectors by weight (equation (3))."""
        if distances is None:
            distances = compute_distances(weights, value)
        vectors = self.relative_values(distances)
        relative = ops.einsum("bhts,tsd->bhtd", weights, vectors)
        return ops.matmul(weights, value) + relative
