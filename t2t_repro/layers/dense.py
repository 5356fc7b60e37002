"""The position-wise linear map."""

from typing import Any

import keras
from keras import ops

from t2t_repro.layers.few_rows import multiply
from t2t_repro.layers.typing import Tensor


class Dense(keras.layers.Layer):
    """``x @ kernel (+ bias)``: one matrix product for all positions of a batch.

    Keras' own Dense takes sentences apart: it leaves a rank-3 product to the backend,
    which on TensorFlow makes one kernel gradient per sentence and sums them.

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
        """Maps each position.

        Args:
            x: float (rows, channels).

        Returns:
            float (rows, units).
        """
        product = multiply(x, self.kernel)
        return ops.add(product, self.bias) if self.use_bias else product
