"""How many of the machine's cores this process may use."""

import os


def usable_cores() -> int:
    """Returns the number that `taskset`, a scheduler or a container leaves.

    TensorFlow's own default is the same.
    """
    return len(os.sched_getaffinity(0))
