"""Position-wise linear projection."""

from collections.abc import Callable
from typing import Any

import keras

from t2t_repro.layers.functional import Tensor, linear
from t2t_repro.layers.layer import Layer, Quantizable


@keras.saving.register_keras_serializable("t2t_repro")
class Dense(Quantizable, keras.layers.Dense, Layer):
    """Linear projection of every position: ``x W`` or ``x W + b``.

    Keras can quantize it and add LoRA factors to its kernel.

    Args:
        units: Number of output channels.
        use_bias: Whether to add the bias b.
        **kwargs: Further arguments of ``keras.layers.Dense``.

    Attributes:
        matmul: Function that computes ``x W + b``; the package's own quantization
            replaces it.
    """

    matmul: Callable[..., Tensor] = staticmethod(linear)

    def __init__(self, units: int, use_bias: bool = False, **kwargs: Any) -> None:
        # None is Glorot-uniform (tensor2tensor utils/optimize.py), with a seed that is
        # drawn when the kernel is created.
        kwargs = {"kernel_initializer": None} | kwargs
        super().__init__(units=units, use_bias=use_bias, **kwargs)

    def call(self, x: Tensor) -> Tensor:
        """Projects float (..., channels) to (..., units)."""
        return self.activation(self.matmul(x, self.kernel, self.bias))
