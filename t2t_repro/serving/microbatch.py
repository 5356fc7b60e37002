"""Computation of large batches in micro-batches, which limits memory."""

from collections.abc import Callable, Sequence

import tensorflow as tf


def compute_in_microbatches(
    compute: Callable[..., Sequence[tf.Tensor]],
    inputs: Sequence[tf.Tensor],
    rows: tf.Tensor,
    outputs: Sequence[tf.TensorSpec],
) -> list[tf.Tensor]:
    """Applies a function to micro-batches and concatenates the results (graph code).

    Args:
        compute: Function from rows of each input to rows of each output.
        inputs: Tensors (batch, ...) of any dtype; the batch may be empty.
        rows: int32 () or (batch,), maximum number of rows of the micro-batch that
            begins at each row, at least 1.
        outputs: Specifications (None, ...) of the outputs; only the batch size may be
            unknown.

    Returns:
        A tensor (batch, ...) for each output.
    """
    batch = tf.shape(inputs[0])[0]
    rows = tf.broadcast_to(rows, [batch])

    def add_microbatch(start: tf.Tensor, *results: tf.Tensor) -> tuple[tf.Tensor, ...]:
        stop = tf.minimum(start + rows[start], batch)
        computed = compute(*(tensor[start:stop] for tensor in inputs))
        return stop, *(
            tf.concat([before, new], axis=0)
            for before, new in zip(results, computed, strict=True)
        )

    empty = [tf.zeros([0, *spec.shape[1:]], spec.dtype) for spec in outputs]
    _, *results = tf.while_loop(
        lambda start, *_: start < batch,
        add_microbatch,
        (tf.constant(0), *empty),
        shape_invariants=(tf.TensorShape([]), *(spec.shape for spec in outputs)),
        parallel_iterations=1,
    )
    return results


def count_rows(positions: int, width: tf.Tensor) -> tf.Tensor:
    """Returns how many rows of length `width` fit into `positions`, at least 1.

    `width` is int32 of any shape, which the result has, too.
    """
    return tf.maximum(positions // tf.maximum(width, 1), 1)
