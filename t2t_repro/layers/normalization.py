"""Layer normalisation with tensor2tensor's epsilon and a short backward pass."""

import keras
from keras import ops

from t2t_repro.layers.typing import Tensor

EPSILON = 1e-6


def _normalize(x: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, object]:
    """Returns layer_norm(x) and its gradient, written out.

    Differentiating the formula step by step makes some twenty passes over memory;
    with the normalised value kept, the gradient takes six.

    Args:
        x: float32 (rows, channels).
        scale: float32 (channels,).
        bias: float32 (channels,).

    Returns:
        float32 (rows, channels), and the function from its gradient to those of the
        three arguments.
    """
    centred = x - ops.mean(x, axis=1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=1, keepdims=True)
    inverse = ops.rsqrt(variance + EPSILON)
    normal = centred * inverse

    def gradient(*args: Tensor, upstream: Tensor | None = None) -> tuple:
        dy = args[0] if upstream is None else upstream
        column = ops.expand_dims(scale, 1) / x.shape[1]
        dy_normal = dy * normal
        # (rows, channels) @ (channels, 1): the means over channels of dy * scale
        # and of dy * scale * normal.
        mean = ops.matmul(dy, column)
        mean_normal = ops.matmul(dy_normal, column)
        dx = (dy * scale - mean - normal * mean_normal) * inverse
        return dx, ops.sum(dy_normal, axis=0), ops.sum(dy, axis=0)

    return normal * scale + bias, gradient


class LayerNormalization(keras.layers.Layer):
    """``(x - mean) * rsqrt(variance + 1e-6) * scale + bias`` over the last axis.

    The variance is the biased one (tensor2tensor
    common_layers.py:layer_norm_compute). Computed in float32 whatever the policy.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates scale (ones) and bias (zeros)."""
        channels = (input_shape[-1],)
        self.scale = self._parameter("scale", channels, "ones")
        self.bias = self._parameter("bias", channels, "zeros")
        self.built = True

    def _parameter(self, name: str, shape: tuple, initializer: str) -> keras.Variable:
        # Autocast would round it, in mixed precision, before it is used in float32.
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, autocast=False
        )

    def call(self, x: Tensor) -> Tensor:
        """Normalises each position.

        Args:
            x: float (rows, channels).

        Returns:
            Like ``x``.
        """
        normal = ops.custom_gradient(_normalize)(
            ops.cast(x, "float32"),
            ops.cast(self.scale.value, "float32"),
            ops.cast(self.bias.value, "float32"),
        )
        return ops.cast(normal, x.dtype)
