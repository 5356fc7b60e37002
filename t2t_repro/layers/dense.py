"""The position-wise linear map."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor


class Dense(keras.layers.Layer):
    """``x @ kernel (+ bias)`` over the last axis, as one flat matrix product.

    Keras' own Dense leaves a rank-3 product to the backend, which on TensorFlow
    makes one kernel gradient per sentence and sums them; flattened rows need one.

    Args:
        units: the number of output channels.
        use_bias: whether a bias is added.
    """

    def __init__(self, units: int, use_bias: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.use_bias = use_bias

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the kernel (Glorot-uniform, tensor2tensor utils/optimize.py)."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer="glorot_uniform",
        )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer="zeros"
            )
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        """Maps the last axis.

        Args:
            x: float (..., channels).

        Returns:
            float (..., units).
        """
        if len(x.shape) == 2:
            return self._map_rows(x)
        # (..., channels) -> (rows, channels) -> (rows, units)
        rows = self._map_rows(ops.reshape(x, (-1, x.shape[-1])))
        return ops.reshape(rows, (*ops.shape(x)[:-1], self.units))

    def _map_rows(self, rows: Tensor) -> Tensor:
        """(rows, channels) -> (rows, units)."""
        rows = ops.matmul(rows, self.kernel)
        return ops.add(rows, self.bias) if self.use_bias else rows
