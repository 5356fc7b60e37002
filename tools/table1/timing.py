"""Layer times, crossover lengths and growth factors."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from table1.layers import Sizes, example, make_layer


def seconds(kind: str, n: int, sizes: Sizes, repeats: int) -> float:
    """Returns the CPU time of a layer's forward pass in a graph, in seconds.

    Other programs affect CPU time less than wall time; on one core, the two are equal
    on an idle machine. The batch size is 1. The result is the minimum over `repeats`
    runs after a warm-up.
    """
    run = tf.function(make_layer(kind, sizes), autograph=False)
    x = example(n, sizes.d)
    run(x).numpy()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run(x).numpy()
        times.append(time.process_time() - start)
    return min(times)


def crossover(
    lengths: Sequence[int], one: Sequence[float], other: Sequence[float]
) -> float | None:
    """Returns the length above which `one` costs more than `other`.

    Interpolates on logarithmic axes between the last two neighboring lengths between
    which the difference of the costs changes its sign. Costs must be positive.

    Returns:
        Length, or None if the costs do not cross.
    """
    gap = np.log(one) - np.log(other)
    for at in range(len(gap) - 1, 0, -1):
        before, after = gap[at - 1], gap[at]
        if before <= 0 <= after and before < after:
            ends = np.log(lengths[at - 1 : at + 1])
            return float(np.exp(np.interp(0, [before, after], ends)))
    return None


def compute_growth(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Returns the growth factor of a cost when its size doubles.

    The factor is computed from the last two sizes.
    """
    power = np.log(costs[-1] / costs[-2]) / np.log(sizes[-1] / sizes[-2])
    return float(2**power)
