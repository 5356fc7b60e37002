"""The two halves of a micro-batch, which draw different dropout masks."""

from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

from t2t_repro.system.dispatch import dispatched

HALVES = 2

Sums = TypeVar("Sums")


@dispatched
def sum_over_halves(
    compute: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Sums],
    inputs: tf.Tensor,
    targets: tf.Tensor,
    seeds: tf.Tensor,
) -> Sums:
    """Computes sums over the rows of a micro-batch, here over both halves at once.

    Every device draws the masks of each half by the seed of that half, so that a
    device that computes one half after the other trains the same weights.

    Args:
        compute: returns a nested structure of sums over rows, of `inputs`, `targets`
            and a `dropout_seed`; its masks are a function of the seed.
        inputs: int32 (rows, source), an even number of rows.
        targets: int32 (rows, target).
        seeds: int32 (2, 2), a seed for each half.

    Returns:
        What `compute` returns.
    """
    return compute(inputs, targets, seeds)
