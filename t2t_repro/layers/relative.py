"""Relative positions in self-attention (Shaw et al. 2018, arXiv:1803.02155)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor


def distances_within(length: Tensor | int) -> Tensor:
    """Returns how far each position lies behind each other one.

    Args:
        length: int (), the number of positions.

    Returns:
        int32 (length, length); row i holds j - i in column j.
    """
    position = ops.arange(length, dtype="int32")
    return ops.expand_dims(position, 0) - ops.expand_dims(position, 1)


class RelativeTable(keras.layers.Layer):
    """One trained vector for each distance from -R to R, shared by all heads.

    Farther ones count as R (tensor2tensor
    common_attention.py:_generate_relative_positions_embeddings).

    Args:
        max_distance: R.
        depth: channels of one head.
    """

    def __init__(self, max_distance: int, depth: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_distance = max_distance
        self.depth = depth

    def build(self) -> None:
        """Creates the table, Glorot-uniform."""
        self.table = self.add_weight(
            name="table",
            shape=(2 * self.max_distance + 1, self.depth),
            initializer="glorot_uniform",
        )
        self.built = True

    def call(self, distances: Tensor) -> Tensor:
        """Looks distances up.

        Args:
            distances: int32 (targets, sources), the key's place less the query's.

        Returns:
            float (targets, sources, depth).
        """
        far = self.max_distance
        rows = ops.clip(distances, -far, far) + far
        return ops.cast(ops.take(self.table, rows, axis=0), self.compute_dtype)
