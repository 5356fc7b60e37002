"""Layer normalisation with a short backward pass."""

from keras import ops

from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.layers.functional import Tensor


def normalize(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Replaces `functional.normalize` on a CPU, with its gradient written out."""
    return _with_gradient(x, scale, bias, epsilon, by_reductions=False)


def normalize_by_reductions(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Replaces `functional.normalize` on a GPU.

    A product with one column is fast on a CPU; on a GPU it is a kernel of its own, to
    which its operands have to be written. A reduction is computed with what it reads.
    """
    return _with_gradient(x, scale, bias, epsilon, by_reductions=True)


def normalize_in_float64(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Replaces `functional.normalize` in a quantized model.

    In float32 the last bit of a mean depends on the other rows of the batch, and a row
    that is rounded to int8 next must not (see `softmax_of_any_width`).
    """

    def mean(x: Tensor) -> Tensor:
        return ops.mean(ops.cast(x, "float64"), axis=-1, keepdims=True)

    centred = x - ops.cast(mean(x), x.dtype)
    inverse = ops.cast(ops.rsqrt(mean(ops.square(centred)) + epsilon), x.dtype)
    return centred * inverse * scale + bias


def _with_gradient(
    x: Tensor, scale: Tensor, bias: Tensor, epsilon: float, by_reductions: bool
) -> Tensor:
    def normalized(x: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, object]:
        return _normalized(x, scale, bias, epsilon, by_reductions)

    rows = ops.custom_gradient(normalized)(flatten_tokens(x), scale, bias)
    return unflatten_tokens(x, rows)


def _normalized(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    epsilon: float,
    by_reductions: bool,
) -> tuple[Tensor, object]:
    """Returns layer_norm(x) and its gradient.

    Differentiating the formula step by step makes some twenty passes over memory;
    with the normalised value kept, the gradient takes six.

    Args:
        x: float32 (rows, channels).
        scale: float32 (channels,).
        bias: float32 (channels,).
        epsilon: added to the variance.
        by_reductions: whether the gradient's means are reductions, not products.

    Returns:
        float32 (rows, channels), and the function from its gradient to those of the
        three arguments.
    """
    centred = x - ops.mean(x, axis=1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=1, keepdims=True)
    inverse = ops.rsqrt(variance + epsilon)
    normal = centred * inverse

    def gradient(*args: Tensor, upstream: Tensor | None = None) -> tuple:
        dy = args[0] if upstream is None else upstream
        dy_normal = dy * normal
        # The means over channels of dy * scale and of dy * scale * normal.
        if by_reductions:
            mean, mean_normal = (
                ops.mean(each * scale, axis=1, keepdims=True)
                for each in (dy, dy_normal)
            )
        else:  # (rows, channels) @ (channels, 1)
            column = ops.expand_dims(scale, 1) / x.shape[1]
            mean, mean_normal = (ops.matmul(each, column) for each in (dy, dy_normal))
        dx = (dy * scale - mean - normal * mean_normal) * inverse
        return dx, ops.sum(dy_normal, axis=0), ops.sum(dy, axis=0)

    return normal * scale + bias, gradient
