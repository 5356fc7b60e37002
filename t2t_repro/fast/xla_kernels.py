"""Functions in forms that suit XLA on a CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from t2t_repro.decoding import candidates
from t2t_repro.fast.flat_attention import flatten_tokens, unflatten_tokens
from t2t_repro.layers import functional, seeded_dropout
from t2t_repro.layers.functional import Shape
from t2t_repro.system.gradients import custom_gradient

LARGE_REDUCTION = 2**15
"""Number of elements from which XLA uses YNNPACK for a float32 reduction on a CPU."""


def is_xla_graph() -> bool:
    """Returns whether XLA will compile the graph that is being traced."""
    return bool(GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()))


def linear(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None = None) -> tf.Tensor:
    """Replaces `functional.linear`; see `_matmul`."""
    if not is_xla_graph():
        return functional.linear.reference(x, kernel, bias)
    y = _matmul(x, kernel, transposed=False)
    return y if bias is None else tf.add(y, bias)


def tied_logits(x: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """Replaces `functional.tied_logits`; see `_matmul`."""
    if not is_xla_graph():
        return functional.tied_logits.reference(x, table)
    return _matmul(x, tf.cast(table, x.dtype), transposed=True)


def _matmul(x: tf.Tensor, matrix: tf.Tensor, transposed: bool) -> tf.Tensor:
    """Computes ``x W`` or ``x W^T`` without a transposed left operand in the gradient.

    The gradient of the matrix is a matmul with a transposed left operand. XLA's library
    gathers such an operand element by element, which is up to 1.7 times slower.
    """

    @custom_gradient
    def multiply(x: tf.Tensor, matrix: tf.Tensor) -> tuple[tf.Tensor, object]:
        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            by_x = tf.matmul(upstream, matrix, transpose_b=not transposed)
            sides = (upstream, x) if transposed else (x, upstream)
            return by_x, _transposed_matmul(*sides)

        return tf.matmul(x, matrix, transpose_b=transposed), gradient

    rows = flatten_tokens(x)
    return unflatten_tokens(x, multiply(rows, tf.convert_to_tensor(matrix)))


def uniform(shape: Shape, seed: tf.Tensor) -> tf.Tensor:
    """Replaces `seeded_dropout.uniform`; draws different numbers, with Threefry.

    Under XLA, Philox takes 2.7 times and Threefry 0.8 times the time of TensorFlow's
    Philox. TensorFlow supports Threefry only under XLA.
    """
    if not is_xla_graph():
        return seeded_dropout.uniform.reference(shape, seed)
    return tf.random.stateless_uniform(shape, seed, alg="threefry")


def maximum(x: tf.Tensor) -> tf.Tensor:
    """Computes the maximum over the last axis, under XLA without YNNPACK.

    XLA uses YNNPACK for float32 reductions of `LARGE_REDUCTION` elements. TensorFlow
    2.21 crashes, once in thousands of searches, if two threads run such a program at
    once (`EmitYnnSubgraph` appends to a list that they share). Larger reductions are
    therefore divided if their shape is static.
    """
    return (
        _reduce_in_chunks(tf.reduce_max, x)
        if is_xla_graph()
        else tf.reduce_max(x, axis=-1)
    )


def softmax(logits: tf.Tensor) -> tf.Tensor:
    """Computes ``tf.nn.softmax``, under XLA without YNNPACK (see `maximum`)."""
    if not is_xla_graph():
        return tf.nn.softmax(logits)
    exponentials = tf.exp(logits - maximum(logits)[..., None])
    return exponentials / _reduce_in_chunks(tf.reduce_sum, exponentials)[..., None]


def largest_log_prob(rows: tf.Tensor, best: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Replaces `candidates.largest_log_prob`, under XLA without YNNPACK."""
    if not is_xla_graph():
        return candidates.largest_log_prob.reference(rows, best, ids)
    exponentials = tf.exp(rows - tf.reduce_max(best, axis=1, keepdims=True))
    return -tf.math.log(_reduce_in_chunks(tf.reduce_sum, exponentials)[:, None])


def _reduce_in_chunks(reduce: Callable[..., tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    """Reduces the last axis in parts of fewer than `LARGE_REDUCTION` elements."""
    elements = x.shape.num_elements()
    if elements is None or elements < LARGE_REDUCTION:
        return reduce(x, axis=-1)
    sizes = x.shape.as_list()
    axis = next((n for n, size in enumerate(sizes[:-1]) if size > 1), -1)
    half = sizes[axis] // 2
    parts = tf.split(x, [half, sizes[axis] - half], axis)
    parts = [_reduce_in_chunks(reduce, part) for part in parts]
    return reduce(tf.stack(parts, -1), axis=-1) if axis < 0 else tf.concat(parts, axis)


def _transposed_matmul(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Computes ``left^T right``: float (rows, a) and (rows, b) to (a, b).

    It copies and transposes the narrower operand.
    """
    if left.shape[1] <= right.shape[1]:
        return tf.matmul(barrier(tf.transpose(left)), right)
    return tf.transpose(barrier(tf.matmul(barrier(tf.transpose(right)), left)))


def barrier(x: tf.Tensor) -> tf.Tensor:
    """Prevents XLA from fusing what computes x with what uses it."""
    return barriers(x)[0]


def barriers(*tensors: tf.Tensor) -> list[tf.Tensor]:
    """Prevents XLA from fusing what computes the tensors with what uses them."""
    return list(xla.optimization_barrier(*tensors) if is_xla_graph() else tensors)


def matmul_transposed(x: tf.Tensor, matrix: tf.Tensor, **kwargs: Any) -> tf.Tensor:
    """Computes ``x M^T``, under XLA as ``(M x^T)^T``.

    With few rows, reading M takes most of the time. On the left, XLA reads it once for
    all rows, and in the order of memory; the columns of a matrix on the right conflict
    in the caches of some processors. Barriers keep XLA from exchanging the sides.

    Args:
        x: float or int8 (..., rows, channels).
        matrix: The same dtype (..., units, channels).
        **kwargs: Options of `tf.matmul`.

    Returns:
        (..., rows, units).
    """
    if not is_xla_graph():
        return tf.matmul(x, matrix, transpose_b=True, **kwargs)
    y = tf.matmul(matrix, barrier(x), transpose_b=True, **kwargs)
    return tf.linalg.matrix_transpose(barrier(y))


def quantize(x: tf.Tensor, low: float, high: float) -> tf.Tensor:
    """Quantizes activations: 0 represents `low` and 255 `high`.

    Args:
        x: float32 (rows, channels); values out of range are clipped.
        low: Lower end of the range.
        high: Upper end of the range.

    Returns:
        int8 (rows, channels): the uint8 values minus 128, since XLA multiplies only
        matrices of the same dtype.
    """
    scale = np.float32(255) / (np.float32(high) - np.float32(low))
    codes = tf.round((tf.clip_by_value(x, low, high) - low) * scale)
    return tf.cast(codes - 128, tf.int8)


def int8_matmul(rows: tf.Tensor, codes: tf.Tensor, sums: tf.Tensor) -> tf.Tensor:
    """Multiplies rows from `quantize` by a quantized matrix; always exact.

    Args:
        rows: int8 (rows, channels).
        codes: qint8 (units, channels).
        sums: int32 (units,), the sums of the codes over channels.

    Returns:
        int32 (rows, units), the product of the uint8 values and the codes.
    """
    # XLA multiplies a matrix by a single row four times as slowly as by two rows.
    several = tf.repeat(rows, 2, axis=0) if rows.shape[0] == 1 else rows
    codes = tf.bitcast(codes, tf.int8)
    products = matmul_transposed(several, codes, output_type=tf.int32)
    return 128 * sums + products[: rows.shape[0]]
