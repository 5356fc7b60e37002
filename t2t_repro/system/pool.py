"""Ordered parallel calls in worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")

_worker: Callable[[Any], Any]
"""Function of this worker process, set by `_start`."""


def map_in_order(
    make: Callable[[], Callable[[A], B]], chunks: Iterable[A], workers: int
) -> Iterator[B]:
    """Yields the results of a function for each chunk, in the order of the chunks.

    Memory holds at most three chunks per worker.

    Args:
        make: Returns the function; called once in each worker. It is pickled.
        chunks: Arguments of the function.
        workers: Number of processes.
    """
    context = multiprocessing.get_context("spawn")
    # The processes use all cores, so that threads of NumPy would only compete.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pending: deque[Future[B]] = deque()
    with ProcessPoolExecutor(workers, context, _start, (make,)) as pool:
        for chunk in chunks:
            pending.append(pool.submit(_call, chunk))
            if len(pending) == 3 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _start(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command handles Ctrl-C.
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker = make()


def _exit_with_parent() -> None:
    """Ends this process if the command is killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(chunk: Any) -> Any:
    return _worker(chunk)
