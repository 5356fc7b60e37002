"""Token embeddings and the logits product (paper section 3.4)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor, embedding_lookup, tied_logits
from t2t_repro.layers.layer import Layer
from t2t_repro.layers.masks import non_padding


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
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: bool = True,
        mask_zero: bool = False,
        **kwargs: Any,
    ) -> None:
        # Autocast would round ids that come as floats: 16 bits count to 256.
        super().__init__(autocast=False, **kwargs)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = scale
        self.mask_zero = mask_zero

    def build(self, input_shape: object = None) -> None:
        """Creates the table."""
        self.table = self.add_weight(
            name="table",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the shape of the embeddings of ids."""
        return (*super().compute_output_shape(*shapes, **named), self.d_model)

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds symbols, PAD as a zero vector; or makes logits of vectors.

        Args:
            inputs: int32 (batch, length); in reverse float (..., d_model).
            reverse: whether to multiply by the transposed table, neither scaled nor
                with a bias.

        Returns:
            float (batch, length, d_model); in reverse float (..., vocab_size).
        """
        if reverse:
            vectors = ops.cast(inputs, self.compute_dtype)
            return tied_logits(vectors, self.table)
        # A Sequential model makes float32 of what it is called with.
        ids = ops.cast(inputs, "int32")
        vectors = ops.cast(embedding_lookup(self.table, ids), self.compute_dtype)
        scale = self.d_model**0.5 if self.scale else 1.0
        mask = ops.cast(non_padding(ids), vectors.dtype) * scale
        return vectors * ops.expand_dims(mask, -1)

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor | None:
        """Returns where the symbols are, bool (batch, length), with `mask_zero`."""
        is_ids = len(inputs.shape) == 2
        return non_padding(inputs) if self.mask_zero and is_ids else mask


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
        self.table = self.add_weight(
            name="table",
            shape=(self.ROWS, input_shape[-1]),
            initializer="glorot_uniform",
        )

    def call(self, x: Tensor) -> Tensor:
        """Adds the vector to float (batch, source, d_model)."""
        return x + ops.cast(self.table[self.target_space_id], x.dtype)
