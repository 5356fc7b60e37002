"""What follows on what: sequential operations and path lengths, read off the layers.

Nothing here knows the paper's formulas: operations are counted in TensorFlow's graph,
and paths found by following gradients from an output to its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from table1.layers import CONVOLUTIONAL, RECURRENT, Layer, Sizes, example, layer_of

Reach = npt.NDArray[np.bool_]
Kernel = npt.NDArray[np.float32]

_PRODUCTS = {"MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "Conv2D"}


def sequential_operations(kind: str, n: int, sizes: Sizes) -> int:
    """Counts the matrix products on the longest way through a layer's graph."""
    layer = layer_of(kind, sizes, unroll=True)
    spec = tf.TensorSpec([1, n, sizes.d])
    traced = tf.function(layer, autograph=False).get_concrete_function(spec)
    longest: dict[str, int] = {}
    # A graph lists operations in the order of their creation: inputs come first.
    for operation in traced.graph.get_operations():
        before = [longest[tensor.op.name] for tensor in operation.inputs]
        own = operation.type in _PRODUCTS
        longest[operation.name] = max(before, default=0) + own
    return max(longest.values())


def reach(layer: Layer, n: int, d: int) -> Reach:
    """Finds which inputs each output of a layer depends on: the gradient is not 0.

    The layer maps float32 (batch, n, d) to the same shape, each example by itself.
    Returns bool (n, n), outputs by inputs.
    """
    # A copy of the input for each output: one backward pass finds all gradients.
    x = tf.repeat(example(n, d), n, axis=0)
    # One number for each output; random signs, lest parts cancel out.
    signs = tf.constant(np.random.default_rng(2).normal(size=d), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.linalg.matvec(layer(x), signs)
        chosen = tf.linalg.diag_part(outputs)
    gradients = tape.gradient(chosen, x)
    return np.asarray(tf.reduce_any(gradients != 0, axis=-1))


def step_of_recurrence(d: int) -> Layer:
    """Returns what one step of a recurrence does to the states of all positions.

    Position t's new state comes from its input and the state of position t - 1; states
    are watched, so that the path between neighbours is one step long.
    """
    cell = keras.layers.SimpleRNNCell(d)
    cell.build((None, d))

    def step(states: tf.Tensor) -> tf.Tensor:
        before = tf.pad(states, [[0, 0], [1, 0], [0, 0]])[:, :-1]
        flat = [tf.reshape(each, [-1, d]) for each in (states, before)]
        return tf.reshape(cell(flat[0], [flat[1]])[0], tf.shape(states))

    return step


def dilated_convolution(kernel: Kernel, dilation: int) -> Layer:
    """Returns a causal convolution over every `dilation`-th position, to the left.

    `kernel` is float32 (k, d, d). Written as a sum over its taps: TensorFlow has no
    gradient of its own dilated convolutions on a CPU.
    """
    wide = (len(kernel) - 1) * dilation

    def convolve(x: tf.Tensor) -> tf.Tensor:
        padded = tf.pad(x, [[0, 0], [wide, 0], [0, 0]])
        length = x.shape[1]
        return tf.add_n(
            [
                padded[:, at * dilation : at * dilation + length] @ tap
                for at, tap in enumerate(kernel)
            ]
        )

    return convolve


def path_length(kind: str, n: int, sizes: Sizes) -> int:
    """Finds how many layers a signal needs between the two farthest of n positions.

    Of a recurrent layer it is the steps of its recurrence, from the first position to
    the last. Convolutions are causal and dilated by 1, k, k², ... (ByteNet's, from
    which the paper has its O(log_k n)); `contiguous_path` is that of plain ones.
    Returns the least number of layers after which every output depends on every input;
    on every earlier one, if the layer is causal. 0 of a single position.
    """
    everything = np.ones((n, n), bool)
    if kind == RECURRENT:
        step = reach(step_of_recurrence(sizes.d), n, sizes.d)
        return _layers_needed(repeat(step), np.tril(everything))
    if kind == CONVOLUTIONAL:
        return _layers_needed(_dilated(n, sizes), np.tril(everything))
    return _layers_needed(repeat(reach(layer_of(kind, sizes), n, sizes.d)), everything)


def contiguous_path(n: int, sizes: Sizes) -> int:
    """Returns the path length of convolutions that are not dilated (paper: n/k)."""
    layer = layer_of(CONVOLUTIONAL, sizes)
    found = reach(layer, n, sizes.d)
    return _layers_needed(repeat(found), np.ones((n, n), bool))


def _dilated(n: int, sizes: Sizes) -> Iterator[Reach]:
    """Yields what convolutions of growing dilation see of n positions."""
    shape = (sizes.kernel, sizes.d, sizes.d)
    kernel = np.random.default_rng(3).normal(size=shape).astype("float32")
    for power in count():
        yield reach(dilated_convolution(kernel, sizes.kernel**power), n, sizes.d)


def _layers_needed(layers: Iterator[Reach], wanted: Reach) -> int:
    """Counts layers until their outputs depend on all that is `wanted`."""
    seen = np.eye(len(wanted), dtype=bool)
    number = 0
    while not seen[wanted].all():
        # What an output sees, and all that this had seen.
        seen = next(layers).astype(np.int64) @ seen.astype(np.int64) > 0
        number += 1
        if number > len(wanted):
            raise AssertionError("the layers do not reach everything")
    return number
