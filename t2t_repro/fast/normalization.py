"""Layer normalization with an explicit gradient."""

from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.fast.xla_kernels import barriers, is_xla_graph
from t2t_repro.layers.functional import Tensor
from t2t_repro.system.gradients import custom_gradient


def normalize(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Replaces `functional.normalize` on a CPU; its gradient uses matmuls."""
    return _normalize_with_gradient(x, scale, bias, epsilon, by_reductions=False)


def normalize_by_reductions(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Replaces `functional.normalize` on a GPU; its gradient uses reductions.

    On a GPU a matmul is a separate kernel that reads its operands from memory. A
    reduction is fused with the operations that compute its operands.
    """
    return _normalize_with_gradient(x, scale, bias, epsilon, by_reductions=True)


def normalize_in_float64(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Replaces `functional.normalize` in a quantized model; means are float64.

    In float32 the last bit of a mean depends on the number of rows in the batch, which
    can change an int8 value computed from it (see `width_independent_softmax`).
    """

    def mean(x: Tensor) -> Tensor:
        return ops.mean(ops.cast(x, "float64"), axis=-1, keepdims=True)

    centred = x - ops.cast(mean(x), x.dtype)
    inverse = ops.cast(ops.rsqrt(mean(ops.square(centred)) + epsilon), x.dtype)
    return centred * inverse * scale + bias


def _normalize_with_gradient(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float, by_reductions: bool
) -> Tensor:
    """Computes layer_norm(x), with an explicit gradient.

    Automatic differentiation makes some twenty passes over memory. This gradient keeps
    the normalized value and makes six.

    Args:
        x: float32 (..., channels).
        scale: float32 (channels,).
        bias: float32 (channels,).
        epsilon: Added to the variance.
        by_reductions: Whether the gradient's means use reductions instead of matmuls.

    Returns:
        float32 (..., channels).
    """

    @custom_gradient
    def layer_norm(x: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, object]:
        mean = ops.mean(x, axis=1, keepdims=True)
        centred = x - mean
        variance = ops.mean(ops.square(centred), axis=1, keepdims=True)
        inverse = ops.rsqrt(variance + epsilon)
        if by_reductions and is_xla_graph():
            # Otherwise, each kernel of the gradient would compute both again, and one
            # would store a value of every channel.
            mean, inverse = barriers(mean, inverse)
            centred = x - mean
        normal = centred * inverse

        def means(*tensors: Tensor) -> list[Tensor]:
            """Computes the mean of each ``tensor * scale`` over channels: (rows, 1)."""
            if by_reductions:
                return [ops.mean(y * scale, axis=1, keepdims=True) for y in tensors]
            column = ops.expand_dims(scale, 1) / x.shape[1]
            return [ops.matmul(y, column) for y in tensors]

        def gradient(*args: Tensor, upstream: Tensor | None = None) -> tuple:
            dy = args[0] if upstream is None else upstream
            dy_normal = dy * normal
            mean, mean_normal = means(dy, dy_normal)
            dx = (dy * scale - mean - normal * mean_normal) * inverse
            return dx, ops.sum(dy_normal, axis=0), ops.sum(dy, axis=0)

        return normal * scale + bias, gradient

    return unflatten_tokens(x, layer_norm(flatten_tokens(x), scale, bias))
