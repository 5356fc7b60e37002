"""Sums over micro-batches whose bits do not depend on the number of devices.

Micro-batches 0, 8, 16, ... are group 0, micro-batches 1, 9, 17, ... group 1, and so on.
The values of a group are added one after the other, and the sums of the eight groups in
pairs: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). Of two devices, the first computes the
left half of these additions and the second the right half, because devices take
micro-batches in turn. Four devices compute a quarter each, and eight a group each.

All values are in one vector, so that the graph has few operations.
"""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

GROUPS = 8
"""Number of groups, and the largest number of devices with the same bits."""


def flatten(values: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the elements of all tensors, float32 (elements,)."""
    return tf.concat([tf.reshape(value, [-1]) for value in values], 0)


def unflatten(vector: tf.Tensor, shapes: Sequence[Sequence[int]]) -> list[tf.Tensor]:
    """Returns tensors of the given shapes with the elements of `flatten`."""
    parts = tf.split(vector, [math.prod(shape) for shape in shapes])
    return [tf.reshape(*each) for each in zip(parts, shapes, strict=True)]


def sum_microbatches(
    compute: Callable[[tf.Tensor], tf.Tensor],
    size: int,
    first: tf.Tensor,
    stride: int,
    count: tf.Tensor,
) -> tf.Tensor:
    """Returns the sum of the vectors of micro-batches first, first + stride, ...

    Args:
        compute: Function from the int32 () number of a micro-batch to its vector,
            float32 (size,).
        size: Number of elements of the vectors.
        first: int32 (), number of the replica.
        stride: Number of replicas.
        count: int32 (), number of micro-batches.
    """
    if stride >= GROUPS:
        return tf.while_loop(
            lambda number, _: number < count,
            lambda number, total: (number + stride, total + compute(number)),
            (first, tf.zeros([size])),
            parallel_iterations=1,
        )[1]

    def sum_half(start: tf.Tensor) -> tf.Tensor:
        return sum_microbatches(compute, size, start, 2 * stride, count)

    left, middle = sum_half(first), first + stride
    # A device computes one micro-batch at a time.
    with tf.control_dependencies([left]):
        return tf.cond(middle < count, lambda: left + sum_half(middle), lambda: left)


def sum_replicas(vector: tf.Tensor) -> tf.Tensor:
    """Returns the sum of all replicas' vectors, float32 (size,), in a replica context.

    If the number of replicas is a power of two, the order of additions is that of
    `sum_microbatches`. The order of the strategy's sum differs between elements.
    """
    context = tf.distribute.get_replica_context()
    replicas = context.num_replicas_in_sync
    if replicas & (replicas - 1):
        return context.all_reduce(tf.distribute.ReduceOp.SUM, vector)
    rows = context.all_gather(vector[tf.newaxis], axis=0)
    while replicas > 1:
        replicas //= 2
        rows = rows[:replicas] + rows[replicas:]
    return rows[0]
