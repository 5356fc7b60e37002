"""Parallel search of several batches on a CPU, with one core per batch."""

import contextlib

import tensorflow as tf

from t2t_repro.fast import is_installed
from t2t_repro.system.cores import usable_cores

# Limits memory on machines with many cores.
_MOST_BATCHES_AT_ONCE = 16


def give_each_batch_a_core(compiled: bool = False) -> None:
    """Configures TensorFlow to run each operation on one core, and batches in parallel.

    A step of the search consists of many small operations, which two cores do not
    compute faster than one. The function is meant for processes that only translate,
    and must run before TensorFlow computes anything. Later, on a GPU, or without
    optimized implementations, it has no effect.

    Args:
        compiled: Whether XLA compiles searches; their matmuls use all cores.
    """
    if tf.config.list_physical_devices("GPU") or not is_installed():
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow is already initialized.
        cores = usable_cores() if compiled else 1
        tf.config.threading.set_intra_op_parallelism_threads(cores)
        tf.config.threading.set_inter_op_parallelism_threads(usable_cores())


def batches_at_once() -> int:
    """Returns the number of batches that are searched in parallel."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(_MOST_BATCHES_AT_ONCE, usable_cores())
