"""Shows on standard error how far a translation is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from tqdm import tqdm

# A log file gets a line every five minutes, a terminal a bar that moves.
_LOG_SECONDS = 300.0
_TERMINAL_SECONDS = 0.1


class ProgressBar:
    """Speed, time left; of `total` lines (None: unknown) a run before did `done`."""

    def __init__(self, total: int | None, done: int, shown: bool) -> None:
        drawn = sys.stderr.isatty()
        wait = _TERMINAL_SECONDS if drawn else _LOG_SECONDS
        self._bar = tqdm(
            total=total,
            initial=done,
            unit=" lines",
            disable=not shown,
            file=sys.stderr if drawn else _Log(sys.stderr),
            mininterval=wait,
            delay=0 if drawn else wait,  # Work that takes less logs nothing.
            miniters=1,
            smoothing=0,  # The longest lines of a window come first.
        )
        self._tokens = 0
        self._began = time.monotonic()

    def update(self, lines: int, tokens: int) -> None:
        """Counts lines that have been translated, and the tokens of their result."""
        self._tokens += tokens
        speed = self._tokens / max(time.monotonic() - self._began, 1e-9)
        self._bar.set_postfix_str(f"{speed:,.0f} tokens/s", refresh=False)
        self._bar.update(lines)

    def __enter__(self) -> ProgressBar:
        """Returns itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Shows the last figures."""
        self._bar.close()


class _Log:
    """Turns a bar that is drawn over and over into lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        if text.strip():
            self._stream.write(f"{text.strip()}\n")

    def flush(self) -> None:
        self._stream.flush()
