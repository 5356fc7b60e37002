"""Requests to stop or save a training: signals, and the limit of its duration."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = "seconds"
"""Key of checkpoint.json: duration of the training in seconds, for `TimeLimit`."""


class TimeLimit:
    """Limit of a training's duration, over all runs that resumed it.

    Args:
        hours: Hyper-parameter `max_hours`; 0 for no limit.
    """

    def __init__(self, hours: float) -> None:
        self._limit = 3600 * hours or math.inf
        self.start(0.0)

    def start(self, seconds: float) -> None:
        """Starts the clock after an earlier duration in seconds."""
        self._before, self._began = seconds, time.monotonic()

    @property
    def seconds(self) -> float:
        """Duration of the training so far."""
        return self._before + time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Time left in seconds, infinite without a limit."""
        return self._limit - self.seconds

    def meta(self) -> dict[str, float]:
        """Returns the values for checkpoint.json; none without a limit."""
        return {} if math.isinf(self._limit) else {SECONDS: self.seconds}


class Requests:
    """Requests that this process has received by signals.

    Attributes:
        stop: Whether SIGINT or SIGTERM has been received.
        save: Whether SIGUSR1 or SIGHUP has been received since the last `take_save`.
    """

    def __init__(self) -> None:
        self.stop = self.save = False

    def take_save(self) -> bool:
        """Returns whether a checkpoint is requested, and clears the request."""
        requested, self.save = self.save, False
        return requested


@contextmanager
def watch_requests() -> Iterator[Requests]:
    """Yields the requests that signals make while the block runs.

    A second SIGINT raises KeyboardInterrupt. Python allows signal handlers in the main
    thread only; training in another thread does not react to signals.
    """
    requests = Requests()

    def stop(number: int, frame: FrameType | None) -> None:
        if requests.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        requests.stop = True

    def save(number: int, frame: FrameType | None) -> None:
        requests.save = True

    handlers = {
        signal.SIGINT: stop,
        signal.SIGTERM: stop,
        signal.SIGUSR1: save,
        signal.SIGHUP: save,
    }
    in_main = threading.current_thread() is threading.main_thread()
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if in_main
    }
    try:
        yield requests
    finally:
        for number, former in before.items():
            signal.signal(number, former)
