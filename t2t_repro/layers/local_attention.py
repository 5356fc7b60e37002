"""Local self-attention, within a radius (paper section 4)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.attention import MultiHeadAttention, masked_softmax
from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.masks import combine_masks
from t2t_repro.system.dispatch import dispatched


def compute_distances(query: Tensor, key: Tensor) -> Tensor:
    """Returns the position of each key minus that of each query.

    The last query and the last key have the same position.

    Args:
        query: float (batch, heads, targets, d_k).
        key: float (batch, heads, sources, d_k).

    Returns:
        int32 (targets, sources).
    """
    targets, sources = ops.shape(query)[2], ops.shape(key)[2]
    places = ops.arange(sources, dtype="int32")
    return places[None, :] - places[sources - targets :, None]


def mask_distant_keys(mask: Tensor | None, distances: Tensor, radius: int) -> Tensor:
    """Extends a mask so that it also hides keys beyond the radius."""
    return combine_masks(mask, ops.abs(distances) <= radius)


@dispatched
def attend_locally(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    radius: int,
    drop: Callable[[Tensor], Tensor],
) -> Tensor:
    """Computes attention within a radius over a whole sequence.

    Args:
        query: float (batch, heads, length, d_k), multiplied by d_k^-0.5.
        key: float (batch, heads, length, d_k).
        value: float (batch, heads, length, d_v).
        mask: bool, broadcastable to (batch, 1, length, length), or None.
        radius: Number of visible positions on either side.
        drop: Dropout of the attention weights.

    Returns:
        float (batch, heads, length, d_v).
    """
    logits = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
    mask = mask_distant_keys(mask, compute_distances(query, key), radius)
    return ops.matmul(drop(masked_softmax(logits, mask)), value)


@keras.saving.register_keras_serializable("t2t_repro")
class LocalAttention(MultiHeadAttention):
    """Self-attention to the nearest positions on either side.

    Args:
        num_heads: Number of heads, h.
        d_k: Number of channels per head of the queries and keys.
        d_v: Number of channels per head of the values.
        radius: Number of visible positions on either side; the paper's r is
            2 * radius + 1.
        **kwargs: Further arguments of `MultiHeadAttention`.
    """

    def __init__(
        self, num_heads: int, d_k: int, d_v: int, *, radius: int, **kwargs: Any
    ) -> None:
        super().__init__(num_heads, d_k, d_v, **kwargs)
        self.radius = radius

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        **where: Tensor,
    ) -> Tensor:
        """Computes attention within the radius; see `MultiHeadAttention.attend`.

        Cached decoding passes the ``distances`` between its query and the keys.
        """
        if where:
            return super().attend(query, key, value, mask, **where)

        heads = attend_locally(query, key, value, mask, self.radius, self.drop)
        return self.merge_heads(heads)

    def attention_weights(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Computes the attention weights within the radius.

        Args:
            query: float (batch, heads, targets, d_k).
            key: float (batch, heads, sources, d_k).
            mask: bool, broadcastable to (batch, heads, targets, sources), or None.
            distances: int32, broadcastable to the same shape; defaults to
                those between queries and keys.

        Returns:
            float (batch, heads, targets, sources).
        """
        if distances is None:
            distances = compute_distances(query, key)
        return super().attention_weights(
            query, key, mask_distant_keys(mask, distances, self.radius)
        )

    def weighted_sum(
        self, weights: Tensor, value: Tensor, distances: Tensor | None = None
    ) -> Tensor:
        """Sums the values by their weights, without using the distances."""
        return super().weighted_sum(weights, value)
