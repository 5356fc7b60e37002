"""Trained vectors that some models add to their embeddings."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor
from t2t_repro.layers.layer import Layer


@keras.saving.register_keras_serializable("t2t_repro")
class LearnedPosition(Layer):
    """Adds rows of a trained table; beyond it, nothing.

    Reference: paper table 3 row (E); tensor2tensor
    common_attention.py:add_positional_embedding (zeros past the table, no error).

    Args:
        max_position: rows of the table.
    """

    def __init__(self, max_position: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_position = max_position

    def build(self, x_shape: Shape) -> None:
        """Creates the table, Glorot-uniform as tensor2tensor's."""
        shape = (self.max_position, x_shape[-1])
        self.table = self.add_weight(shape, "glorot_uniform", name="table")

    def call(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Adds the rows; arguments and result are those of `PositionalEncoding`."""
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        inside = ops.cast(positions < self.max_position, self.compute_dtype)
        rows = ops.minimum(positions, self.max_position - 1)
        rows = ops.cast(ops.take(self.table, rows, axis=0), self.compute_dtype)
        return x + ops.cast(rows * ops.expand_dims(inside, -1), x.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class TargetSpace(Layer):
    """One trained vector added to every source position.

    # T2T: transformer_layers.py:transformer_prepare_encoder adds row
    ``target_space_id`` of a 32-row table, padding positions included. The paper has
    no such vector; tensor2tensor's checkpoints and parameter counts do.

    Args:
        target_space_id: the row used.
    """

    ROWS = 32

    def __init__(self, target_space_id: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_space_id = target_space_id

    def build(self, input_shape: Shape) -> None:
        """Creates the table, Glorot-uniform."""
        shape = (self.ROWS, input_shape[-1])
        self.table = self.add_weight(shape, "glorot_uniform", name="table")

    def call(self, x: Tensor) -> Tensor:
        """Adds the vector to float (batch, source, d_model)."""
        return x + ops.cast(self.table[self.target_space_id], x.dtype)
