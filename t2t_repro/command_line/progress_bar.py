"""Progress of a translation on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

# Seconds between lines in a log file, and between updates of the bar on a terminal.
_LOG_SECONDS = 300.0
_TERMINAL_SECONDS = 0.1


@contextmanager
def progress_bar(
    total: int | None, done: int, shown: bool
) -> Iterator[Callable[[int, int], None]]:
    """Shows the progress, the speed and the remaining time.

    Args:
        total: Number of lines; None if unknown.
        done: Number of lines that an earlier run translated.
        shown: Whether to show anything.

    Yields:
        A function whose arguments are the numbers of lines and tokens translated since
        the last call.
    """
    is_terminal = sys.stderr.isatty()
    wait = _TERMINAL_SECONDS if is_terminal else _LOG_SECONDS
    start, all_tokens = time.monotonic(), 0

    def update(lines: int, tokens: int) -> None:
        nonlocal all_tokens
        all_tokens += tokens
        speed = all_tokens / max(time.monotonic() - start, 1e-9)
        bar.set_postfix_str(f"{speed:,.0f} tokens/s", refresh=False)
        bar.update(lines)

    with tqdm(
        total=total,
        initial=done,
        unit=" lines",
        disable=not shown,
        file=sys.stderr if is_terminal else _Log(sys.stderr),
        mininterval=wait,
        delay=0 if is_terminal else wait,  # Shorter runs log nothing.
        miniters=1,
        # 0 averages the speed over the whole run. A recent speed would mislead, because
        # each window starts with its longest lines.
        smoothing=0,
    ) as bar:
        yield update


class _Log:
    """A stream that writes each update of a progress bar as a line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if text.strip():
            self._stream.write(f"{text.strip()}\n")

    def flush(self) -> None:
        self._stream.flush()
