"""A batch of several micro-batches as one element of a tf.data pipeline.

The element is a dictionary. `inputs` and `targets` are string (micro-batches,), each a
serialized int32 (rows, length), padded with 0; micro-batches of other processes are
empty strings. `token_ratio` is float32 (), the ratio of non-padding tokens to positions
in all micro-batches.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

PackedBatch = dict[str, npt.NDArray[Any]]

# Batches differ in the number and shapes of their micro-batches, but the training step
# is traced only once, so its argument needs a fixed type. A RaggedTensor would be 2.5
# times slower to read from.
SIGNATURE = {
    "inputs": tf.TensorSpec([None], tf.string),
    "targets": tf.TensorSpec([None], tf.string),
    "token_ratio": tf.TensorSpec([], tf.float32),
}

BATCH_SIGNATURE = (
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None], tf.int32),
)
"""Signature of a micro-batch: `inputs` (rows, source), `targets` (rows, target)."""


def pack(*rectangles: Mapping[str, Any] | None, token_ratio: float) -> PackedBatch:
    """Packs micro-batches into a batch.

    Args:
        *rectangles: Micro-batches with `inputs`, int (rows, source), and `targets`, int
            (rows, target); None for those of another process.
        token_ratio: Ratio of non-padding tokens to positions in all micro-batches.
    """
    packed: PackedBatch = {
        side: np.array([_serialize(each, side) for each in rectangles], object)
        for side in ("inputs", "targets")
    }
    return packed | {"token_ratio": np.array(token_ratio, np.float32)}


def _serialize(rectangle: Mapping[str, Any] | None, side: str) -> bytes:
    if rectangle is None:
        return b""
    ids = np.asarray(rectangle[side], np.int32)
    return tf.make_tensor_proto(ids).SerializeToString()


def select_microbatches(
    replicas: range, of: int, count: int, whole: bool = False
) -> set[int]:
    """Returns the numbers of the micro-batches that the given replicas compute.

    Replicas take whole micro-batches in turn. If there are fewer micro-batches than
    replicas, `TrainStep` cuts each by rows.

    Args:
        replicas: Numbers of the replicas.
        of: Total number of replicas.
        count: Number of micro-batches in the batch.
        whole: Whether micro-batches are never cut, so that some replicas have none.
    """
    cuts = 1 if whole else max(of // count, 1)
    return {piece // cuts for piece in range(count * cuts) if piece % of in replicas}


def rectangle(
    batch: Mapping[str, Any], number: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `inputs` (rows, source) and `targets` (rows, target) of a micro-batch."""
    with tf.device("CPU:0"):  # Only a CPU supports string tensors.
        sides = (
            tf.io.parse_tensor(tf.convert_to_tensor(batch[side])[number], tf.int32)
            for side in ("inputs", "targets")
        )
        inputs, targets = map(tf.ensure_shape, sides, [[None, None]] * 2)
    return inputs, targets
