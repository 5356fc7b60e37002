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


def pack(
    *rectangles: Mapping[str, Any] | None, token_ratio: float | None = None
) -> PackedBatch:
    """Packs micro-batches into a batch.

    Args:
        *rectangles: Micro-batches with `inputs`, int (rows, source), and `targets`, int
            (rows, target); None for those of another process.
        token_ratio: Ratio of non-padding tokens to positions. Default: computed from
            `rectangles`.
    """
    sides = {
        side: [None if r is None else np.asarray(r[side], np.int32) for r in rectangles]
        for side in ("inputs", "targets")
    }
    if token_ratio is None:
        arrays = [ids for side in sides.values() for ids in side if ids is not None]
        tokens = sum(int(np.count_nonzero(ids)) for ids in arrays)
        token_ratio = token_ratio_of(tokens, sum(ids.size for ids in arrays))
    packed: PackedBatch = {
        name: np.array([_serialized(ids) for ids in side], object)
        for name, side in sides.items()
    }
    return packed | {"token_ratio": np.array(token_ratio, np.float32)}


def _serialized(ids: npt.NDArray[np.int32] | None) -> bytes:
    return b"" if ids is None else tf.make_tensor_proto(ids).SerializeToString()


def token_ratio_of(tokens: int, positions: int) -> float:
    """Returns the ratio of non-padding tokens to positions, rounded to float32."""
    return float(np.float32(tokens) / np.float32(positions))


def parts_of(replicas: range, of: int, parts: int) -> set[int]:
    """Returns the numbers of the micro-batches that the given replicas compute.

    Replicas take whole micro-batches in turn. If there are fewer micro-batches than
    replicas, `TrainStep` cuts each by rows.

    Args:
        replicas: Numbers of the replicas.
        of: Total number of replicas.
        parts: Number of micro-batches in the batch.
    """
    cuts = max(of // parts, 1)
    return {piece // cuts for piece in range(parts * cuts) if piece % of in replicas}


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
