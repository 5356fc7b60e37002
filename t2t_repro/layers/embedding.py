"""Token embeddings and the logits product (paper section 3.4)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.few_rows import multiply_transposed
from t2t_repro.layers.masks import non_padding
from t2t_repro.layers.typing import Tensor


class TokenEmbedding(keras.layers.Layer):
    """A matrix of symbols, used as embedding, as pre-softmax product, or as both.

    Rows are drawn from normal(0, d_model^-0.5) (tensor2tensor
    modalities.py:get_weights).

    Args:
        vocab_size: V, PAD (0) and EOS (1) included.
        d_model: the number of channels.
        scale: whether embeddings are multiplied by sqrt(d_model).
    """

    def __init__(
        self, vocab_size: int, d_model: int, scale: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = d_model**0.5 if scale else 1.0

    def build(self) -> None:
        """Creates the table."""
        self.table = self.add_weight(
            name="table",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )
        self.built = True

    def call(self, ids: Tensor) -> Tensor:
        """Embeds symbols, multiplied by the scale; PAD becomes a zero vector.

        Args:
            ids: int32 (batch, length).

        Returns:
            float (batch, length, d_model).
        """
        vectors = ops.cast(ops.take(self.table, ids, axis=0), self.compute_dtype)
        mask = non_padding(ids, vectors.dtype) * self.scale
        return vectors * ops.expand_dims(mask, -1)

    def logits(self, x: Tensor) -> Tensor:
        """Multiplies by the transposed table: no bias, no scaling.

        Args:
            x: float (..., d_model).

        Returns:
            float (..., vocab_size).
        """
        leading = ops.shape(x)[:-1]
        rows = ops.cast(ops.reshape(x, (-1, self.d_model)), self.compute_dtype)
        product = multiply_transposed(rows, self.table)
        return ops.reshape(product, (*leading, self.vocab_size))


class TargetSpace(keras.layers.Layer):
    """One trained vector added to every source position.

    # T2T: transformer_layers.py:transformer_prepare_encoder adds row
    ``target_space_id`` of a 32-row table, padding positions included. The paper has
    no such vector; tensor2tensor's checkpoints and parameter counts do.

    Args:
        d_model: the number of channels.
        target_space_id: the row used.
    """

    ROWS = 32

    def __init__(self, d_model: int, target_space_id: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.d_model = d_model
        self.target_space_id = target_space_id

    def build(self) -> None:
        """Creates the table, Glorot-uniform."""
        self.table = self.add_weight(
            name="table",
            shape=(self.ROWS, self.d_model),
            initializer="glorot_uniform",
        )
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        """Adds the vector.

        Args:
            x: float (batch, source, d_model).

        Returns:
            Like ``x``.
        """
        # A one-row gather keeps the gradient dense in the row alone.
        return x + ops.cast(self.table[self.target_space_id], x.dtype)
