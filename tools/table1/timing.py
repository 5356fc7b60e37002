"""How long a layer takes, and where two layers take as long as one another."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from table1.layers import Sizes, example, layer_of


def seconds(kind: str, n: int, sizes: Sizes, repeats: int) -> float:
    """Measures the forward pass of one layer, compiled to a graph, batch 1.

    Processor time, so that nothing else on the machine is counted; where operations run
    on one core each it is the time that passes, too. The least of `repeats` runs, after
    one that is not timed, is what other work disturbs least.
    """
    run = tf.function(layer_of(kind, sizes), autograph=False)
    x = example(n, sizes.d)
    run(x).numpy()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        run(x).numpy()
        found.append(time.process_time() - start)
    return min(found)


def crossover(
    lengths: Sequence[int], one: Sequence[float], other: Sequence[float]
) -> float | None:
    """Finds the length from which on one costs more than the other (costs above 0).

    Where the lines between the last two points with a change of sign cross, on
    logarithmic axes; None if one is cheaper everywhere, or never.
    """
    gap = np.log(one) - np.log(other)
    for at in range(len(gap) - 1, 0, -1):
        if gap[at - 1] <= 0 < gap[at] or (gap[at - 1] < 0 <= gap[at]):
            share = gap[at - 1] / (gap[at - 1] - gap[at])
            ends = np.log([lengths[at - 1], lengths[at]])
            return float(np.exp(ends[0] + share * (ends[1] - ends[0])))
    return None


def doubled(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Returns what a cost is multiplied by when its size doubles, at the last two."""
    power = np.log(costs[-1] / costs[-2]) / np.log(sizes[-1] / sizes[-2])
    return float(2**power)
