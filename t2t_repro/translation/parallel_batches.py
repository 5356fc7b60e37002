"""Parallel search of several batches on a CPU, with one core per batch."""

import contextlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.system.cores import usable_cores

# Limits memory on machines with many cores.
_MOST_BATCHES_AT_ONCE = 16


def give_each_batch_a_core(compiled: bool = False) -> None:
    """Configures TensorFlow to run each operation on one core, and batches in parallel.

    A step of the search consists of many small operations, which two cores do not
    compute faster than one. The function is meant for processes that only translate,
    and must run before TensorFlow computes anything. Later, or on a GPU, it has no
    effect.

    Args:
        compiled: Whether XLA compiles searches; their matmuls use all cores.
    """
    if tf.config.list_physical_devices("GPU"):
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow is already initialized.
        cores = usable_cores() if compiled else 1
        tf.config.threading.set_intra_op_parallelism_threads(cores)
        tf.config.threading.set_inter_op_parallelism_threads(usable_cores())


def rows_at_once(sentences: int, batch_size: int) -> int:
    """Returns the batch size that gives every core a batch, at most `batch_size`."""
    return max(1, min(batch_size, -(-sentences // batches_at_once())))


def rows_or_few(
    lengths: Sequence[int] | np.ndarray, batch_size: int, for_few: CompiledSearch | None
) -> int:
    """Returns the batch size for sentences that a compiled search may translate.

    It is `rows_at_once`, unless the compiled search is ready for `rows_of_few`.

    Args:
        lengths: Number of tokens of each sentence, the longest first.
        batch_size: Maximum number of sentences per batch.
        for_few: The compiled search, if any.
    """
    sentences = len(lengths)
    if for_few and sentences:
        rows = rows_of_few(sentences, batch_size, for_few)
        if for_few.is_ready(rows, int(lengths[0])):
            return rows
    return rows_at_once(sentences, batch_size)


def rows_of_few(sentences: int, batch_size: int, for_few: CompiledSearch) -> int:
    """Returns the batch size for the compiled search.

    A few sentences are one batch, whose matmuls use all cores; more are divided if
    several compiled searches at once are faster.
    """
    rows = rows_at_once(sentences, batch_size)
    together = min(batch_size, for_few.most_together)
    return rows if sentences > together and for_few.is_parallel(rows) else sentences


def batches_at_once() -> int:
    """Returns the number of batches that are searched in parallel."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    return min(_MOST_BATCHES_AT_ONCE, usable_cores())
