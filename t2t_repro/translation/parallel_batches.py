"""Batches that are searched side by side on a CPU, a core each."""

import contextlib

import tensorflow as tf

from t2t_repro.system.cores import usable_cores

# Bounds the memory on machines of many cores.
_MOST_BATCHES_AT_ONCE = 16


def give_each_batch_a_core(compiled: bool = False) -> None:
    """Makes TensorFlow run each operation on one core, and batches side by side.

    For a process that only translates, before TensorFlow computes anything; later, or
    on a GPU, nothing changes. A step of the search is many small operations, which two
    cores finish no sooner than one.

    Args:
        compiled: whether searches are compiled; their products use all cores.
    """
    if tf.config.list_physical_devices("GPU"):
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow has computed something.
        cores = usable_cores() if compiled else 1
        tf.config.threading.set_intra_op_parallelism_threads(cores)
        tf.config.threading.set_inter_op_parallelism_threads(usable_cores())


def rows_at_once(sentences: int, batch_size: int) -> int:
    """Returns how many of the sentences make a batch, so that all cores have one."""
    return max(1, min(batch_size, -(-sentences // batches_at_once())))


def batches_at_once() -> int:
    """Returns how many batches this machine searches at the same time."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(_MOST_BATCHES_AT_ONCE, usable_cores())
