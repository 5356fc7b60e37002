"""How every program that is timed takes its turns; needs only Python.

A program does its imports, builds its model, and iterates over `turns`: each line of
standard input is a request, each answer one line of JSON on standard output.

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
from typing import Any

# What libraries print goes with the log; standard output has only the answers.
_ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def memory(field: str) -> int:
    """Returns the memory in use now (VmRSS) or at most so far (VmHWM), bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{field}:\s*(\d+) kB", status)[0]) * 1024


def turns(memory_before: int = 0) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yields each request and its answer, which is sent when the next is wanted.

    An answer has `seconds` and `processor_seconds`, unless the program puts its own
    there, and `memory`: at most so far, bytes.

    Args:
        memory_before: memory to subtract: VmRSS after the imports, bytes.
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
    """Yields once for each step to be made; a request is how many."""
    for count, _ in turns(memory_before):
        for _ in range(count):
            yield
