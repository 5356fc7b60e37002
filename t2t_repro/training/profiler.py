"""A trace of chosen updates for TensorBoard's profiler."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf


class Profile:
    """Traces updates `first` (from 1; 0: none) to `last`, for TensorBoard."""

    def __init__(self, directory: Path, first: int = 0, last: int = 0) -> None:
        self._directory = directory
        self._first = first
        self._last = last
        self._is_tracing = False

    @contextmanager
    def update(self, step: int) -> Iterator[None]:
        """Surrounds an update; a training that resumes traces what is left."""
        if not self._first <= step <= self._last:
            yield
            return
        if not self._is_tracing:
            tf.profiler.experimental.start(str(self._directory))
            self._is_tracing = True
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            yield
        if step == self._last:
            self.close()

    def close(self) -> None:
        """Writes what was traced so far, where anything was."""
        if self._is_tracing:
            tf.profiler.experimental.stop()
            self._is_tracing = False
