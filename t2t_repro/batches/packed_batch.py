"""A batch made of parts: rectangles of different shapes, laid flat one after another.

A dictionary: `inputs` and `targets` int32 (ids,), row after row and part after part,
padded with 0 within each part; `shapes` int32 (parts, 3), rows, source width and
target width of each part; `token_ratio` float32 (), the ratio of non-padding tokens to
positions.
Where several processes train together, parts that another one computes have no rows.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Parts = dict[str, npt.NDArray[Any]]

SIGNATURE = {
    "inputs": tf.TensorSpec([None], tf.int32),
    "targets": tf.TensorSpec([None], tf.int32),
    "shapes": tf.TensorSpec([None, 3], tf.int32),
    "token_ratio": tf.TensorSpec([], tf.float32),
}

BATCH_SIGNATURE = (
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None], tf.int32),
)
"""A rectangle: `inputs` (rows, source) and `targets` (rows, target)."""


def pack(*rectangles: Mapping[str, Any], token_ratio: float | None = None) -> Parts:
    """Makes a batch of rectangles of `inputs` (rows, source), `targets` likewise.

    `token_ratio` is counted unless it is given.
    """
    sides = [
        [np.asarray(r[side], np.int32) for r in rectangles]
        for side in ("inputs", "targets")
    ]
    shapes = [(*i.shape, t.shape[1]) for i, t in zip(*sides, strict=True)]
    inputs, targets = (np.concatenate([a.ravel() for a in side]) for side in sides)
    if token_ratio is None:
        symbols = np.count_nonzero(inputs) + np.count_nonzero(targets)
        token_ratio = token_ratio_of(int(symbols), inputs.size + targets.size)
    return {
        "inputs": inputs,
        "targets": targets,
        "shapes": np.array(shapes, np.int32),
        "token_ratio": np.array(token_ratio, np.float32),
    }


def token_ratio_of(symbols: int, positions: int) -> float:
    """Returns the share of positions that hold a symbol, rounded as float32."""
    return float(np.float32(symbols) / np.float32(positions))


def parts_of(replicas: range, of: int, parts: int) -> set[int]:
    """Returns which parts of a batch some replicas compute, out of so many replicas.

    As `TrainStep` deals them: whole parts in turn; too few are cut.
    """
    cuts = max(of // parts, 1)
    return {piece // cuts for piece in range(parts * cuts) if piece % of in replicas}


def rectangle(
    batch: Mapping[str, Any], part: tf.Tensor | int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the `inputs` (rows, source) and `targets` (rows, target) of a part."""
    rows = batch["shapes"][:, 0]

    def side(name: str, column: int) -> tf.Tensor:
        widths = batch["shapes"][:, column]
        sizes = rows * widths
        start = tf.reduce_sum(sizes[:part])
        ids = batch[name][start : start + sizes[part]]
        return tf.reshape(ids, [rows[part], widths[part]])

    return side("inputs", 1), side("targets", 2)
