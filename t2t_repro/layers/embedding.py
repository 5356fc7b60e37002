"""Token embeddings and pre-softmax logits (paper section 3.4)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor, embedding_lookup, tied_logits
from t2t_repro.layers.layer import Layer
from t2t_repro.layers.masks import non_padding

RULED_OUT = -1e4
"""Logit of an impossible token: its probability is 0, and float16 can represent it."""


@keras.saving.register_keras_serializable("t2t_repro")
class TokenEmbedding(Layer):
    """Embedding table that can also compute the pre-softmax logits.

    Rows are initialized from normal(0, d_model^-0.5) (tensor2tensor
    modalities.py:get_weights).

    Args:
        vocab_size: Number of rows, V, including PAD (0) and EOS (1).
        d_model: Number of channels.
        scale: Whether to multiply embeddings by sqrt(d_model).
        mask_zero: Whether embeddings carry a Keras mask that hides PAD.
        use_bias: Whether to add a bias to the logits. Its initial values exclude PAD
            from the output; imported models exclude other unused rows in the same way.
        start_symbol: Id whose embedding replaces that of PAD, because PAD is the first
            decoder input of shifted targets; 0: PAD embeds to zeros. The padding at the
            end of a row does not affect other positions in either case.

    Attributes:
        matmul: Function that computes ``x E^T``; quantization replaces it.
        lookup: Function that reads rows of the table; quantization replaces it.
    """

    matmul: Callable[..., Tensor] = staticmethod(tied_logits)
    lookup: Callable[..., Tensor] = staticmethod(embedding_lookup)

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: bool = True,
        mask_zero: bool = False,
        use_bias: bool = False,
        start_symbol: int = 0,
        **kwargs: Any,
    ) -> None:
        # Autocast to bfloat16 would round ids above 256 that are passed as floats.
        super().__init__(autocast=False, **kwargs)
        self.vocab_size, self.d_model, self.scale = vocab_size, d_model, scale
        self.mask_zero, self.use_bias = mask_zero, use_bias
        self.start_symbol = start_symbol
        self.bias = None

    def build(self, input_shape: object = None) -> None:
        """Creates the table and the bias."""
        shape = (self.vocab_size, self.d_model)
        normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.table = self.add_weight(shape, normal, name="table")
        if self.use_bias:
            self.bias = self.add_weight(shape[:1], _exclude_padding, name="bias")

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the shape of the embeddings: that of the ids, then d_model."""
        return (*super().compute_output_shape(*shapes, **named), self.d_model)

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds tokens, PAD as zeros; in reverse, computes logits.

        Args:
            inputs: int32 (batch, length); in reverse, float (..., d_model).
            reverse: Whether to multiply by the transposed table, without scaling.

        Returns:
            float (batch, length, d_model); in reverse, float (..., vocab_size).
        """
        if reverse:
            logits = self.matmul(ops.cast(inputs, self.compute_dtype), self.table)
            if self.bias is None:
                return logits
            return ops.add(logits, ops.cast(self.bias, logits.dtype))
        # A Sequential model converts its inputs to float32.
        ids = ops.cast(inputs, "int32")
        if self.start_symbol:
            ids = ops.where(non_padding(ids), ids, self.start_symbol)
        vectors = ops.cast(self.lookup(self.table, ids), self.compute_dtype)
        scale = self.d_model**0.5 if self.scale else 1.0
        mask = ops.cast(non_padding(ids), vectors.dtype) * scale
        return vectors * ops.expand_dims(mask, -1)

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor | None:
        """Returns the embeddings' mask, bool (batch, length), if `mask_zero` is set."""
        is_ids = len(inputs.shape) == 2
        return non_padding(inputs) if self.mask_zero and is_ids else mask


def _exclude_padding(shape: Shape, dtype: Any = None) -> Tensor:
    """Initializes the logits' bias: `RULED_OUT` for PAD, 0 for other tokens."""
    return ops.cast(ops.arange(shape[0]) == 0, dtype) * RULED_OUT


@keras.saving.register_keras_serializable("t2t_repro")
class TargetSpace(Layer):
    """Trained vector that is added to every source position.

    # T2T: transformer_layers.py:transformer_prepare_encoder adds row
    ``target_space_id`` of a 32-row table, including padding positions. The paper has no
    such vector, but tensor2tensor's checkpoints and parameter counts include it.

    Args:
        target_space_id: Row of the table.
    """

    def __init__(self, target_space_id: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_space_id = target_space_id

    def build(self, input_shape: Shape) -> None:
        """Creates the table, Glorot-uniform."""
        self.table = self.add_weight((32, input_shape[-1]), name="table")

    def call(self, x: Tensor) -> Tensor:
        """Adds the vector to float (batch, source, d_model)."""
        return x + ops.cast(self.table[self.target_space_id], x.dtype)
