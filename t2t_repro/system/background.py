"""Background thread that runs one task at a time and reports its errors."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress


class Background:
    """Background thread for one task at a time.

    Every method raises the error of a task that has failed.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._task: Future[None] | None = None

    def start(self, task: Callable[[], None]) -> None:
        """Waits for the previous task to end, then starts a new one."""
        self.wait()
        self._task = self._thread.submit(task)

    def check(self) -> None:
        """Raises the error of a failed task; does not wait for a running one."""
        if self._task is not None and self._task.done():
            self.wait()

    def wait(self) -> None:
        """Waits for the current task, if any, to end."""
        task, self._task = self._task, None
        try:
            if task is not None:
                task.result()
        finally:
            del task  # Avoids a reference cycle: error, traceback, frame, task.

    @contextmanager
    def wait_at_end(self) -> Iterator[None]:
        """Waits for the task when the block ends.

        If both the block and the task fail, the block's error is raised.
        """
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.wait()
            raise
        self.wait()
