"""A batch of several micro-batches as one element of a tf.data pipeline.

A dictionary: `inputs` and `targets` string (micro-batches,), each a serialized
rectangle int32 (rows, length), padded with 0; `token_ratio` float32 (), the ratio of
non-padding tokens to positions. Where several processes train together, the
micro-batches of the other ones are empty strings.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

PackedBatch = dict[str, npt.NDArray[Any]]

# Batches have different numbers of micro-batches, of different shapes, and the update
# must be traced once: its argument has one type. A RaggedTensor has one as well, but
# a step takes 2.5 times the time to read a rectangle from it.
SIGNATURE = {
    "inputs": tf.TensorSpec([None], tf.string),
    "targets": tf.TensorSpec([None], tf.string),
    "token_ratio": tf.TensorSpec([], tf.float32),
}

BATCH_SIGNATURE = (
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None], tf.int32),
)
"""A rectangle: `inputs` (rows, source) and `targets` (rows, target)."""


def pack(
    *rectangles: Mapping[str, Any] | None, token_ratio: float | None = None
) -> PackedBatch:
    """Makes a batch of rectangles of `inputs` (rows, source), `targets` likewise.

    None is a micro-batch of another process. `token_ratio` is counted unless it is
    given.
    """
    sides = {
        side: [None if r is None else np.asarray(r[side], np.int32) for r in rectangles]
        for side in ("inputs", "targets")
    }
    if token_ratio is None:
        ids = [each for side in sides.values() for each in side if each is not None]
        tokens = sum(int(np.count_nonzero(each)) for each in ids)
        token_ratio = token_ratio_of(tokens, sum(each.size for each in ids))
    packed: PackedBatch = {
        name: np.array([_serialized(ids) for ids in side], object)
        for name, side in sides.items()
    }
    return packed | {"token_ratio": np.array(token_ratio, np.float32)}


def _serialized(ids: npt.NDArray[np.int32] | None) -> bytes:
    return b"" if ids is None else tf.make_tensor_proto(ids).SerializeToString()


def token_ratio_of(tokens: int, positions: int) -> float:
    """Returns the ratio of non-padding tokens to positions, rounded as float32."""
    return float(np.float32(tokens) / np.float32(positions))


def parts_of(replicas: range, of: int, parts: int) -> set[int]:
    """Returns which micro-batches some replicas compute, of all `of` replicas.

    `TrainStep` deals whole micro-batches in turn, and cuts them by rows if there are
    fewer than replicas.
    """
    cuts = max(of // parts, 1)
    return {piece // cuts for piece in range(parts * cuts) if piece % of in replicas}


def rectangle(
    batch: Mapping[str, Any], number: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `inputs` (rows, source) and `targets` (rows, target) of a micro-batch."""
    with tf.device("CPU:0"):  # No other device reads strings.
        sides = (
            tf.io.parse_tensor(tf.convert_to_tensor(batch[side])[number], tf.int32)
            for side in ("inputs", "targets")
        )
        inputs, targets = map(tf.ensure_shape, sides, [[None, None]] * 2)
    return inputs, targets
