"""Residual connections and layer normalization: "Add & Norm" in figure 1."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.functional import Shape, Tensor, normalize
from t2t_repro.layers.layer import Layer


@keras.saving.register_keras_serializable("t2t_repro")
class LayerNormalization(Layer):
    """``(x - mean) / sqrt(variance + epsilon) * scale + bias`` over the last axis.

    The variance is the biased estimate (tensor2tensor
    common_layers.py:layer_norm_compute). The computation is in float32 under every
    dtype policy.

    Args:
        epsilon: Constant added to the variance.
        **kwargs: Arguments of the base class.

    Attributes:
        normalize: Function that computes the formula; quantization replaces it.
    """

    normalize: Callable[..., Tensor] = staticmethod(normalize)

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        """Creates scale (ones) and bias (zeros)."""
        # Autocast would round both to 16 bits in mixed precision.
        options = {"shape": (input_shape[-1],), "autocast": False}
        self.scale = self.add_weight(name="scale", initializer="ones", **options)
        self.bias = self.add_weight(name="bias", initializer="zeros", **options)

    def call(self, x: Tensor) -> Tensor:
        """Normalizes each position of float (..., channels)."""
        wide, scale, bias = (ops.cast(v, "float32") for v in (x, self.scale, self.bias))
        return ops.cast(self.normalize(wide, scale, bias, self.epsilon), x.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class Residual(Layer):
    """Residual connection, dropout and layer normalization around a sub-layer f.

    - Post-norm, as in the paper: ``LayerNorm(x + Dropout(f(x)))``
      (tensor2tensor's postprocess sequence "dan").
    - Pre-norm, tensor2tensor's later default: ``x + Dropout(f(LayerNorm(x)))``
      (preprocess sequence "n", postprocess sequence "da").

    Args:
        dropout: P_drop, the dropout rate of the sub-layer's output.
        norm: "post" or "pre".
        epsilon: Constant added to the variance by the normalization.

    Raises:
        ValueError: ``norm`` is neither "post" nor "pre".
    """

    def __init__(
        self,
        dropout: float = 0.0,
        norm: str = "post",
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'norm {norm!r}: use "post" or "pre"')
        self.dropout, self.norm, self.epsilon = dropout, norm, epsilon
        policy = self.dtype_policy
        self.layer_norm = LayerNormalization(epsilon, name="layer_norm", dtype=policy)
        self.drop = Dropout(dropout, name="dropout", dtype=policy)

    def build(self, x_shape: Shape) -> None:
        """Builds the normalization and the dropout."""
        self.layer_norm.build(x_shape)
        self.drop.build(x_shape)

    def call(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Applies the sub-layer, dropout, residual connection and normalization.

        Args:
            x: float (..., d_model).
            sublayer: The function f, passed by name because Keras requires positional
                arguments to be tensors.

        Returns:
            float (..., d_model).
        """
        if self.norm == "pre":
            return ops.add(x, self.drop(sublayer(self.layer_norm(x))))
        return self.layer_norm(ops.add(x, self.drop(sublayer(x))))
