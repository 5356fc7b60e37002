"""Ctrl-C at moments at which TensorFlow does not crash."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def delay_interrupts(
    function: Callable[..., object] | None,
) -> Iterator[Callable[..., None]]:
    """Delays Ctrl-C to the next call of a function, or to the end of the block.

    TensorFlow runs Python code when it converts a value to a tensor, and crashes if the
    signal handler raises there. A second Ctrl-C raises KeyboardInterrupt at once.

    Only Python's own handler is delayed, and only in the main thread, because Python
    runs no signal handlers in other threads.

    Args:
        function: Function that the block calls often; None for one that does nothing.

    Yields:
        A function that calls `function` and then raises a delayed KeyboardInterrupt.

    Raises:
        KeyboardInterrupt: Ctrl-C was delayed, and the block ended without an error.
    """
    received = False

    def receive(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received:
            raise KeyboardInterrupt
        received = True

    def call(*arguments: object) -> None:
        if function is not None:
            function(*arguments)
        if received:
            raise KeyboardInterrupt

    default = signal.default_int_handler
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not default:
        yield call
        return
    signal.signal(signal.SIGINT, receive)
    try:
        yield call
    finally:
        signal.signal(signal.SIGINT, default)
    if received:
        raise KeyboardInterrupt
