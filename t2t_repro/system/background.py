"""Work beside the main thread, one task at a time, whose errors are not lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress


class Background:
    """A thread for one task at a time; any method raises the error of a task."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._task: Future[None] | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Begins a task when the one before it has ended."""
        self.wait()
        self._task = self._thread.submit(task)

    def check(self) -> None:
        """Raises the error of a task that has failed; does not wait."""
        if self._task is not None and self._task.done():
            self.wait()

    def wait(self) -> None:
        """Waits until the task, if any, has ended."""
        task, self._task = self._task, None
        try:
            if task is not None:
                task.result()
        finally:
            del task  # Else its error would hold this frame, and so itself.

    @contextmanager
    def finished_at_end(self) -> Iterator[None]:
        """Waits when the block ends; an error of the block comes before the task's."""
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.wait()
            raise
        self.wait()
