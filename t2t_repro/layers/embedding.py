"""Token embeddings and pre-softmax logits (paper section 3.4)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.functional import Shape, Tensor, embedding_lookup, tied_logits
from t2t_repro.layers.layer import Layer, Quantizable, argument_names
from t2t_repro.layers.masks import non_padding

RULED_OUT = -1e4
"""Logit of an impossible token: its probability is 0, and float16 can represent it."""

_KERAS = keras.layers.Embedding, keras.layers.ReversibleEmbedding
_ONLY_KERAS = {name for kind in _KERAS for name in argument_names(kind)}
_ONLY_KERAS -= {"mask_zero", "quantization_config"}


@keras.saving.register_keras_serializable("t2t_repro")
class TokenEmbedding(Quantizable, keras.layers.ReversibleEmbedding, Layer):
    """Embedding table that can also compute the pre-softmax logits.

    Rows are initialized from normal(0, d_model^-0.5) (tensor2tensor
    modalities.py:get_weights). Keras can quantize the table and add LoRA factors to it.

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
        **kwargs: Arguments of the base class.

    Attributes:
        matmul: Function that computes ``x E^T``; the package's own quantization
            replaces it.
        lookup: Function that reads rows of the table; the package's own quantization
            replaces it.

    Raises:
        TypeError: An argument is one that only Keras' embeddings have.
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
        if unknown := _ONLY_KERAS & kwargs.keys():
            raise TypeError(f"TokenEmbedding has no arguments {sorted(unknown)}")
        # Keras' default initializer would draw a random number, which would change the
        # initial weights of other layers.
        kwargs |= {"embeddings_initializer": None, "mask_zero": mask_zero}
        super().__init__(input_dim=vocab_size, output_dim=d_model, **kwargs)
        self.vocab_size, self.d_model, self.scale = vocab_size, d_model, scale
        self.use_bias, self.start_symbol = use_bias, start_symbol
        self.bias, self.supports_masking = None, True

    def build(self, input_shape: object = None) -> None:
        """Creates the table and the bias."""
        shape, mode = (self.vocab_size, self.d_model), self.quantization_mode
        if mode:
            self.quantized_build(shape, mode, self.quantization_config)
        else:
            normal = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
            self._embeddings = self.add_weight(shape, normal, name="table")
        if self.use_bias:
            self.bias = self.add_weight(shape[:1], _exclude_padding, name="bias")

    @property
    def table(self) -> Tensor:
        """The embedding table, float (V, d_model); a tensor if it has LoRA factors."""
        return self.embeddings

    @property
    def variable_serialization_spec(self) -> dict[str | None, list[str]]:
        """Names of the saved attributes by quantization mode, in order."""
        bias = ["bias"] if self.use_bias else []
        spec = super().variable_serialization_spec
        return {mode: names + bias for mode, names in spec.items()}

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments; the saved table has its LoRA factors added."""
        config = super().get_config()
        return {name: config[name] for name in config if name not in _ONLY_KERAS}

    def compute_output_shape(self, *shapes: Shape, **named: Any) -> Shape:
        """Returns the shape of the embeddings, or of the logits in reverse.

        Summaries do not pass `reverse`: an input with a third axis of d_model channels
        is a decoder's output.
        """
        reverse = named.pop("reverse", False)
        shape = Layer.compute_output_shape(self, *shapes, **named)
        if reverse or (len(shape) > 2 and shape[-1] == self.d_model):
            return (*shape[:-1], self.vocab_size)
        return (*shape, self.d_model)

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Embeds tokens, PAD as zeros; in reverse, computes logits.

        Args:
            inputs: int32 (batch, length); in reverse, float (..., d_model).
            reverse: Whether to multiply by the transposed table, without scaling.

        Returns:
            float (batch, length, d_model); in reverse, float (..., vocab_size).
        """
        if reverse:
            logits = self._read_table(ops.cast(inputs, self.compute_dtype), True)
            if self.bias is None:
                return logits
            return ops.add(logits, ops.cast(self.bias, logits.dtype))
        # A Sequential model converts its inputs to float32.
        ids = ops.cast(inputs, "int32")
        if self.start_symbol:
            ids = ops.where(non_padding(ids), ids, self.start_symbol)
        vectors = ops.cast(self._read_table(ids), self.compute_dtype)
        scale = self.d_model**0.5 if self.scale else 1.0
        mask = ops.cast(non_padding(ids), vectors.dtype) * scale
        return vectors * ops.expand_dims(mask, -1)

    # Keras calls this method instead if it has quantized the table.
    quantized_call = call

    def _read_table(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if self.quantization_mode:
            return super().quantized_call(inputs, reverse)
        if reverse:
            return self.matmul(inputs, self.table)
        return self.lookup(self.table, inputs)

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
