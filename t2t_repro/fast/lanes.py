"""The halves of a micro-batch side by side, on half of a CPU's cores each.

Where all cores divide every operation they wait for each other after each of them;
two lanes wait for each other once.
"""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

from t2t_repro.models.halves import HALVES, sum_over_halves
from t2t_repro.system.cores import usable_cores

Sums = TypeVar("Sums")


def sum_in_lanes(
    compute: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Sums],
    inputs: tf.Tensor,
    targets: tf.Tensor,
    seeds: tf.Tensor,
) -> Sums:
    """Stands in for `halves.sum_over_halves`: calls `compute` for each half.

    Neither call needs the other's result, so TensorFlow runs them at the same time.
    """
    split = (tf.split(side, HALVES) for side in (inputs, targets))
    lanes = [compute(*lane) for lane in zip(*split, tf.unstack(seeds), strict=True)]
    return tf.nest.map_structure(lambda *sums: tf.add_n(sums), *lanes)


def divide_cores() -> None:
    """Gives each lane its share of the cores, if there are lanes.

    Only before TensorFlow has computed anything; later it does nothing.
    """
    if sum_over_halves.implementation is sum_in_lanes:
        with contextlib.suppress(RuntimeError):
            tf.config.threading.set_intra_op_parallelism_threads(
                max(1, usable_cores() // HALVES)
            )
