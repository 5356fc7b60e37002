"""Sequential operations and path lengths, measured on real layers.

The measurements do not use the paper's formulas: operations are counted in TensorFlow's
graph, and path lengths follow from the gradients of outputs with respect to inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from table1.layers import CONVOLUTIONAL, RECURRENT, Layer, Sizes, example, make_layer

Reach = npt.NDArray[np.bool_]
Kernel = npt.NDArray[np.float32]

_MATMULS = {"MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "Conv2D"}


def sequential_operations(kind: str, n: int, sizes: Sizes) -> int:
    """Returns the number of matmuls on the longest path through a layer's graph."""
    layer = make_layer(kind, sizes, unroll=True)
    spec = tf.TensorSpec([1, n, sizes.d])
    traced = tf.function(layer, autograph=False).get_concrete_function(spec)
    longest: dict[str, int] = {}
    # A graph lists operations in order of creation, so inputs precede their users.
    for operation in traced.graph.get_operations():
        before = [longest[tensor.op.name] for tensor in operation.inputs]
        own = operation.type in _MATMULS
        longest[operation.name] = max(before, default=0) + own
    return max(longest.values())


def reach(layer: Layer, n: int, d: int) -> Reach:
    """Returns the inputs that each output of a layer depends on.

    An output depends on the inputs for which its gradient is not zero.

    Args:
        layer: Function of float32 (batch, n, d) that keeps the shape and treats
            examples independently.
        n: Number of positions.
        d: Number of channels.

    Returns:
        bool (n, n), outputs by inputs.
    """
    # With one copy of the input per output, one backward pass computes all gradients.
    x = tf.repeat(example(n, d), n, axis=0)
    # Random weights prevent gradients of channels from canceling.
    weights = tf.constant(np.random.default_rng(2).normal(size=d), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.linalg.matvec(layer(x), weights)
        diagonal = tf.linalg.diag_part(outputs)
    gradients = tape.gradient(diagonal, x)
    return np.asarray(tf.reduce_any(gradients != 0, axis=-1))


def step_of_recurrence(d: int) -> Layer:
    """Returns one step of a recurrence as a layer over the states of all positions.

    The new state of position t depends on the states of positions t and t - 1, so the
    path between neighbors has length 1.
    """
    cell = keras.layers.SimpleRNNCell(d)
    cell.build((None, d))

    def step(states: tf.Tensor) -> tf.Tensor:
        before = tf.pad(states, [[0, 0], [1, 0], [0, 0]])[:, :-1]
        flat = [tf.reshape(each, [-1, d]) for each in (states, before)]
        return tf.reshape(cell(flat[0], [flat[1]])[0], tf.shape(states))

    return step


def dilated_convolution(kernel: Kernel, dilation: int) -> Layer:
    """Returns a causal dilated convolution with a kernel of float32 (k, d, d).

    The convolution is a sum over taps, because TensorFlow's dilated convolution has no
    gradient on CPUs.
    """
    wide = (len(kernel) - 1) * dilation

    def convolve(x: tf.Tensor) -> tf.Tensor:
        padded, length = tf.pad(x, [[0, 0], [wide, 0], [0, 0]]), x.shape[1]
        begins = range(0, wide + 1, dilation)
        taps = zip(begins, kernel, strict=True)
        return tf.add_n([padded[:, at : at + length] @ tap for at, tap in taps])

    return convolve


def path_length(kind: str, n: int, sizes: Sizes) -> int:
    """Returns the maximum path length between n positions.

    This is the smallest number of layers after which all outputs depend on all inputs,
    or on all earlier inputs in a causal layer. In a recurrent layer, it is the number
    of steps of the recurrence. Convolutions are causal with dilations 1, k, k², ...,
    as in ByteNet, the source of the paper's O(log_k n).
    """
    everything = np.ones((n, n), bool)
    if kind == RECURRENT:
        step = reach(step_of_recurrence(sizes.d), n, sizes.d)
        return _count_layers(repeat(step), np.tril(everything))
    if kind == CONVOLUTIONAL:
        return _count_layers(_grow_dilation(n, sizes), np.tril(everything))
    one_layer = reach(make_layer(kind, sizes), n, sizes.d)
    return _count_layers(repeat(one_layer), everything)


def _grow_dilation(n: int, sizes: Sizes) -> Iterator[Reach]:
    """Yields the dependencies of convolutions of increasing dilation."""
    shape = (sizes.kernel, sizes.d, sizes.d)
    kernel = np.random.default_rng(3).normal(size=shape).astype("float32")
    for power in count():
        yield reach(dilated_convolution(kernel, sizes.kernel**power), n, sizes.d)


def _count_layers(layers: Iterator[Reach], required: Reach) -> int:
    """Returns the number of layers until the `required` dependencies exist."""
    reached = np.eye(len(required), dtype=bool)
    for number in range(len(required) + 1):
        if reached[required].all():
            return number
        # Composes the dependencies of the next layer with those of the stack below.
        reached = next(layers).astype(np.int64) @ reached.astype(np.int64) > 0
    raise AssertionError("some outputs never depend on some inputs")
