"""Computes the two halves of a micro-batch in parallel, each on half of the CPU cores.

If all cores share each operation, they synchronize after every operation. The two
lanes synchronize only once.
"""

import contextlib
from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

from t2t_repro.models.halves import HALVES
from t2t_repro.system.cores import usable_cores

Sums = TypeVar("Sums")


def sum_in_lanes(
    compute: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Sums],
    inputs: tf.Tensor,
    targets: tf.Tensor,
    seeds: tf.Tensor,
) -> Sums:
    """Replaces `halves.sum_over_halves`: calls `compute` for each half.

    The calls do not depend on each other, so TensorFlow runs them in parallel.
    """
    split = (tf.split(side, HALVES) for side in (inputs, targets))
    lanes = [compute(*lane) for lane in zip(*split, tf.unstack(seeds), strict=True)]
    return tf.nest.map_structure(lambda *sums: tf.add_n(sums), *lanes)


def divide_cores() -> None:
    """Limits each operation to one lane's cores, for `sum_in_lanes`.

    TensorFlow allows it only before its first computation; later calls are ignored.
    """
    with contextlib.suppress(RuntimeError):
        cores = max(1, usable_cores() // HALVES)
        tf.config.threading.set_intra_op_parallelism_threads(cores)
