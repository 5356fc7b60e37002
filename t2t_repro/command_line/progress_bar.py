"""Shows on standard error how far a translation is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

# A log file gets a line every five minutes, a terminal a bar that moves.
_LOG_SECONDS = 300.0
_TERMINAL_SECONDS = 0.1


@contextmanager
def progress_bar(
    total: int | None, done: int, shown: bool
) -> Iterator[Callable[[int, int], None]]:
    """Shows the progress, the speed and the time left.

    Args:
        total: number of lines; None: unknown.
        done: how many of them an earlier run translated.
        shown: whether anything is shown.

    Yields:
        A function that counts lines that were translated, and the tokens of their
        translations.
    """
    drawn = sys.stderr.isatty()
    wait = _TERMINAL_SECONDS if drawn else _LOG_SECONDS
    began, all_tokens = time.monotonic(), 0

    def update(lines: int, tokens: int) -> None:
        nonlocal all_tokens
        all_tokens += tokens
        speed = all_tokens / max(time.monotonic() - began, 1e-9)
        bar.set_postfix_str(f"{speed:,.0f} tokens/s", refresh=False)
        bar.update(lines)

    with tqdm(
        total=total,
        initial=done,
        unit=" lines",
        disable=not shown,
        file=sys.stderr if drawn else _Log(sys.stderr),
        mininterval=wait,
        delay=0 if drawn else wait,  # Work that takes less logs nothing.
        miniters=1,
        smoothing=0,  # The longest lines of a window come first.
    ) as bar:
        yield update


class _Log:
    """Turns a bar that is drawn over and over into lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if text.strip():
            self._stream.write(f"{text.strip()}\n")

    def flush(self) -> None:
        self._stream.flush()
