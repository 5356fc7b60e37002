"""How every program of `benchmark_training.py` takes its turns; needs nothing else.

A program imports what it needs, notes its memory, builds, and then makes a step
whenever `turns` yields. The first one it makes by itself; after that, each line of
standard input says how many. Each answer is one line of JSON on standard output:
`memory_before` and `memory` (bytes, see `memory`), and after the first step `seconds`,
what the steps of the line took together.

The syntax keeps to Python 3.7, which tensor2tensor needs.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

# What libraries print goes with the log; the answers stay alone.
_ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def memory(field: str) -> int:
    """Returns the memory in use now (VmRSS) or at most so far (VmHWM), bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{field}:\s*(\d+) kB", status)[0]) * 1024


def turns(memory_before: int) -> Iterator[None]:
    """Yields once for every step to be made.

    Args:
        memory_before: what the process held (VmRSS) when its imports were done, bytes.
    """
    yield
    _answer(memory_before=memory_before)
    for line in sys.stdin:
        started = time.perf_counter()
        for _ in range(int(line)):
            yield
        seconds = time.perf_counter() - started
        _answer(memory_before=memory_before, seconds=seconds)


def _answer(**values: float) -> None:
    values["memory"] = memory("VmHWM")
    _ANSWERS.write(json.dumps(values) + "\n")
    _ANSWERS.flush()
