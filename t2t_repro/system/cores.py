"""Number of processor cores available to this process."""

import os


def usable_cores() -> int:
    """Returns the number of cores in the process's CPU affinity mask.

    `taskset`, job schedulers and containers restrict the mask. TensorFlow's default
    number of threads is the same.
    """
    return len(os.sched_getaffinity(0))
