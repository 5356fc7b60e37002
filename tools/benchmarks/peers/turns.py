"""Protocol between the benchmarks and the programs that they time.

A program builds its model and then iterates over `turns`. Each line of standard input
is a request in JSON; each line of standard output is an answer in JSON.

The module uses only the standard library and the syntax of Python 3.7, which
tensor2tensor requires.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Standard output is reserved for answers: output of libraries goes to standard error.
_ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def memory(field: str) -> int:
    """Returns the current (VmRSS) or peak (VmHWM) memory of this process in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{field}:\s*(\d+) kB", status)[0]) * 1024


def turns(memory_before: int = 0) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yields each request with a dictionary for its answer.

    The answer is sent when the loop body ends. It gets `seconds` and
    `processor_seconds`, unless the program has set them, and the peak `memory`.

    Args:
        memory_before: Number of bytes to subtract from the memory: VmRSS after the
            imports.
    """
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        started, used = time.perf_counter(), time.process_time()
        yield request, answer
        answer.setdefault("seconds", time.perf_counter() - started)
        answer.setdefault("processor_seconds", time.process_time() - used)
        answer["memory"] = memory("VmHWM") - memory_before
        _ANSWERS.write(json.dumps(answer) + "\n")
        _ANSWERS.flush()


def steps(memory_before: int) -> Iterator[None]:
    """Yields once per step; each request is a number of steps."""
    for count, _ in turns(memory_before):
        for _ in range(count):
            yield
