"""The box "Add & Norm" of figure 1 (paper sections 3.1 and 5.4)."""

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

    The variance is the biased one (tensor2tensor
    common_layers.py:layer_norm_compute). Computed in float32 whatever the policy.

    Args:
        epsilon: added to the variance.
        **kwargs: those of every layer.

    Attributes:
        normalize: Computes the formula; replaced when a model is quantized.
    """

    normalize: Callable[..., Tensor] = normalize

    def __init__(self, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        """Creates scale (ones) and bias (zeros)."""
        # Autocast would round them, in mixed precision, before they are used.
        channels = {"shape": (input_shape[-1],), "autocast": False}
        self.scale = self.add_weight(name="scale", initializer="ones", **channels)
        self.bias = self.add_weight(name="bias", initializer="zeros", **channels)

    def call(self, x: Tensor) -> Tensor:
        """Normalises each position of float (..., channels)."""
        wide, scale, bias = (ops.cast(v, "float32") for v in (x, self.scale, self.bias))
        return ops.cast(self.normalize(wide, scale, bias, self.epsilon), x.dtype)


@keras.saving.register_keras_serializable("t2t_repro")
class Residual(Layer):
    """Residual connection, dropout and layer normalisation around a sub-layer f.

    - post-norm, the paper's: ``LayerNorm(x + Dropout(f(x)))``
      (tensor2tensor's postprocess sequence "dan");
    - pre-norm, tensor2tensor's later default: ``x + Dropout(f(LayerNorm(x)))``
      (preprocess "n", postprocess "da").

    Args:
        dropout: P_drop of the sub-layer's output.
        norm: "post" or "pre".
        epsilon: added to the variance by the normalisation.

    Raises:
        ValueError: ``norm`` is neither.
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
        self.dropout = dropout
        self.norm = norm
        self.epsilon = epsilon
        policy = self.dtype_policy
        self.layer_norm = LayerNormalization(epsilon, name="layer_norm", dtype=policy)
        self.drop = Dropout(dropout, name="dropout", dtype=policy)

    def build(self, x_shape: Shape) -> None:
        """Creates the normalisation."""
        self.layer_norm.build(x_shape)
        self.drop.build(x_shape)

    def call(
        self,
        x: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        training: bool | None = None,
    ) -> Tensor:
        """Applies a sub-layer to float (..., d_model).

        Args:
            x: float (..., d_model).
            sublayer: f, given by its name (``sublayer=f``), as Keras wants it.
            training: whether to drop.

        Returns:
            Like ``x``.
        """
        if self.norm == "pre":
            y = sublayer(self.layer_norm(x))
            return ops.add(x, self.drop(y, training=training))
        return self.layer_norm(ops.add(x, self.drop(sublayer(x), training=training)))
