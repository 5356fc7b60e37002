"""Traces of selected steps for TensorBoard's profiler."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf


class Profile:
    """Profiler of a range of steps.

    Args:
        directory: Folder of the TensorBoard events.
        first: First step to trace, from 1; 0 traces none.
        last: Last step to trace.
    """

    def __init__(self, directory: Path, first: int = 0, last: int = 0) -> None:
        self._directory = directory
        self._first = first
        self._last = last
        self._is_tracing = False

    @contextmanager
    def update(self, step: int) -> Iterator[None]:
        """Traces the block if the step is within the range.

        A training run that resumes within the range traces the remaining steps.
        """
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
        """Ends the trace, if one is active, and writes it."""
        if self._is_tracing:
            tf.profiler.experimental.stop()
            self._is_tracing = False
