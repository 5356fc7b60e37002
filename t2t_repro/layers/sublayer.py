"""The residual connection around every sub-layer (paper sections 3.1 and 5.4)."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.dropout import Dropout
from t2t_repro.layers.normalization import LayerNormalization
from t2t_repro.layers.typing import Tensor


class Residual(keras.layers.Layer):
    """Residual connection, dropout and layer normalisation around a sub-layer f.

    - post-norm, the paper's: ``LayerNorm(x + Dropout(f(x)))``
      (tensor2tensor's postprocess sequence "dan");
    - pre-norm, tensor2tensor's later default: ``x + Dropout(f(LayerNorm(x)))``
      (preprocess "n", postprocess "da").

    Args:
        d_model: channels.
        dropout: P_drop of the sub-layer's output.
        norm: "post" or "pre".
    """

    def __init__(self, d_model: int, dropout: float, norm: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.d_model = d_model
        self.norm = norm
        policy = self.dtype_policy
        self.layer_norm = LayerNormalization(name="layer_norm", dtype=policy)
        self.dropout = Dropout(dropout, name="dropout", dtype=policy)

    def build(self) -> None:
        """Creates the normalisation."""
        self.layer_norm.build((None, None, self.d_model))
        self.dropout.build()
        self.built = True

    def enter(self, x: Tensor) -> Tensor:
        """Returns what the sub-layer reads: ``x``, normalised first in pre-norm.

        Args:
            x: float (rows, d_model).

        Returns:
            Like ``x``.
        """
        return self.layer_norm(x) if self.norm == "pre" else x

    def call(self, x: Tensor, y: Tensor, seed: Tensor | None = None) -> Tensor:
        """Joins the sub-layer's output to its residual connection.

        Args:
            x: float (rows, d_model), what came before the sub-layer.
            y: float (rows, d_model), f's output.
            seed: int32 (2,) for dropout, or None at inference.

        Returns:
            float (rows, d_model).
        """
        total = ops.add(x, self.dropout(y, seed))
        return total if self.norm == "pre" else self.layer_norm(total)
