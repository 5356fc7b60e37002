"""Position-wise linear projection."""

from collections.abc import Callable
from typing import Any

import keras

from t2t_repro.layers.functional import Shape, Tensor, linear
from t2t_repro.layers.layer import Layer


@keras.saving.register_keras_serializable("t2t_repro")
class Dense(Layer):
    """Linear projection of every position: ``x W`` or ``x W + b``.

    Args:
        units: Number of output channels.
        use_bias: Whether to add the bias b.

    Attributes:
        matmul: Function that computes ``x W + b``; quantization replaces it.
    """

    matmul: Callable[..., Tensor] = staticmethod(linear)

    def __init__(self, units: int, use_bias: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.use_bias = use_bias
        self.bias = None

    def build(self, input_shape: Shape) -> None:
        """Creates kernel (Glorot-uniform, tensor2tensor utils/optimize.py) and bias."""
        self.kernel = self.add_weight((input_shape[-1], self.units), name="kernel")
        if self.use_bias:
            self.bias = self.add_weight((self.units,), "zeros", name="bias")

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns (..., units)."""
        return (*super().compute_output_shape(*shapes, **named)[:-1], self.units)

    def call(self, x: Tensor) -> Tensor:
        """Projects float (..., channels) to (..., units)."""
        return self.matmul(x, self.kernel, self.bias)
