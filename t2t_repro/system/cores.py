"""How many of the machine's cores this process may use."""

import os


def usable_cores() -> int:
    """Counts them: `taskset`, a scheduler or a container may leave it only some.

    TensorFlow's own default is the same number.
    """
    return len(os.sched_getaffinity(0))
