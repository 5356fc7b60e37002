"""Token embeddings and the logits product (paper section 3.4)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor, embedding_lookup, tied_logits
from t2t_repro.layers.layer import Layer
from t2t_repro.layers.masks import non_padding

RULED_OUT = -1e4
"""A logit whose probability is 0 beside any other; 16 bits hold it, too."""


@keras.saving.register_keras_serializable("t2t_repro")
class TokenEmbedding(Layer):
    """A table of symbols: embedding, pre-softmax product, or one table as both.

    Rows are drawn from normal(0, d_model^-0.5) (tensor2tensor
    modalities.py:get_weights).

    Args:
        vocab_size: V, PAD (0) and EOS (1) included.
        d_model: the number of channels.
        scale: whether embeddings are multiplied by sqrt(d_model).
        mask_zero: whether the embeddings carry Keras' mask that hides PAD.
        use_bias: whether each symbol's logit has a bias; that of PAD, as of any symbol
            that no text has, rules it out.
        start_symbol: the id whose embedding PAD gets in place of a vector of zeros, so
            that it starts a target that was shifted by PAD; 0: none. What pads a batch
            is not seen, whatever its embedding.

    Attributes:
        matmul: Computes ``x E^T``; replaced, like `lookup`, when a model is quantized.
        lookup: Reads rows of the table.
    """

    matmul: Callable[..., Tensor] = tied_logits
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
        # Autocast would round ids that come as floats: 16 bits count to 256.
        super().__init__(autocast=False, **kwargs)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = scale
        self.mask_zero = mask_zero
        self.use_bias = use_bias
        self.start_symbol = start_symbol
        self.bias = None

    def build(self, input_shape: object = None) -> None:
        """Creates the table and the bias."""
        shape = (self.vocab_size, self.d_model)
        normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.table = self.add_weight(shape, normal, name="table")
        if self.use_bias:
            self.bias = self.add_weight(shape[:1], _all_but_padding, name="bias")

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the shape of the embeddings of ids."""
        return (*super().compute_output_shape(*shapes, **named), self.d_model)

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds symbols, PAD as a zero vector; or makes logits of vectors.

        Args:
            inputs: int32 (batch, length); in reverse float (..., d_model).
            reverse: whether to multiply by the transposed table, unscaled.

        Returns:
            float (batch, length, d_model); in reverse float (..., vocab_size).
        """
        if reverse:
            logits = self.matmul(ops.cast(inputs, self.compute_dtype), self.table)
            if self.bias is None:
                return logits
            return ops.add(logits, ops.cast(self.bias, logits.dtype))
        # A Sequential model makes float32 of what it is called with.
        ids = ops.cast(inputs, "int32")
        if self.start_symbol:
            ids = ops.where(non_padding(ids), ids, self.start_symbol)
        vectors = ops.cast(self.lookup(self.table, ids), self.compute_dtype)
        scale = self.d_model**0.5 if self.scale else 1.0
        mask = ops.cast(non_padding(ids), vectors.dtype) * scale
        return vectors * ops.expand_dims(mask, -1)

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor | None:
        """Returns where the symbols are, bool (batch, length), with `mask_zero`."""
        return (
            non_padding(inputs) if self.mask_zero and len(inputs.shape) == 2 else mask
        )


def _all_but_padding(shape: Shape, dtype: Any = None) -> Tensor:
    """Makes a bias that gives PAD no probability, and else zeros."""
    return ops.cast(ops.arange(shape[0]) == 0, dtype) * RULED_OUT


@keras.saving.register_keras_serializable("t2t_repro")
class TargetSpace(Layer):
    """One trained vector added to every source position.

    # T2T: transformer_layers.py:transformer_prepare_encoder adds row
    ``target_space_id`` of a 32-row table, padding positions included. The paper has
    no such vector; tensor2tensor's checkpoints and parameter counts do.

    Args:
        target_space_id: the row used.
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
