"""A batch of any size is computed a part at a time: memory stays bounded."""

from collections.abc import Callable, Sequence

import tensorflow as tf


def in_parts(
    compute: Callable[..., Sequence[tf.Tensor]],
    inputs: Sequence[tf.Tensor],
    rows: tf.Tensor,
    outputs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Applies a function to a few rows at a time, and joins its results (graph code).

    Args:
        compute: takes rows of each input and returns those of each output.
        inputs: tensors (batch, ...) of any dtype; the batch may be empty.
        rows: int32 (), the most rows of a part, at least 1.
        outputs: what is returned, (batch, ...); the other axes are known.

    Returns:
        A tensor (batch, ...) for each output.
    """
    batch = tf.shape(inputs[0])[0]

    def next_part(start: tf.Tensor, *done: tf.Tensor) -> tuple[tf.Tensor, ...]:
        stop = tf.minimum(start + rows, batch)
        part = compute(*(tensor[start:stop] for tensor in inputs))
        return stop, *(
            tf.concat([before, now], axis=0)
            for before, now in zip(done, part, strict=True)
        )

    nothing = [tf.zeros([0, *spec.shape[1:]], spec.dtype) for spec in outputs]
    _, *joined = tf.while_loop(
        lambda start, *_: start < batch,
        next_part,
        (tf.constant(0), *nothing),
        shape_invariants=(tf.TensorShape([]), *(spec.shape for spec in outputs)),
        parallel_iterations=1,
    )
    return joined


def rows_within(positions: int, width: tf.Tensor) -> tf.Tensor:
    """Returns how many rows of a width have at most as many positions, at least 1."""
    return tf.maximum(positions // tf.maximum(width, 1), 1)
