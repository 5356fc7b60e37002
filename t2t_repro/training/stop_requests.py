"""Requests to stop a training: signals, and the limit of its duration."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
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


@contextmanager
def watch_stop_requests() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether SIGINT or SIGTERM has been received.

    A second SIGINT raises KeyboardInterrupt. Python allows signal handlers in the main
    thread only; training in another thread cannot be stopped by signals.
    """
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        requested = True

    in_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if in_main else ()
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
