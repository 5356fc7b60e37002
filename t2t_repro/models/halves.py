"""Sums over the two halves of a micro-batch, which draw different dropout masks."""

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
    """Computes sums over the rows of a micro-batch, both halves at once.

    The masks of each half depend only on its seed, so computing one half after the
    other trains the same weights.

    Args:
        compute: Function of `inputs`, `targets` and a `dropout_seed` that returns sums
            over rows in a nested structure.
        inputs: int32 (rows, source), with an even number of rows.
        targets: int32 (rows, target).
        seeds: int32 (2, 2), one seed per half.

    Returns:
        The result of `compute`.
    """
    return compute(inputs, targets, seeds)
