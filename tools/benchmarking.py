"""What the benchmarks share: the machine, processes that run alone, and their logs."""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

QUIET = 0.5
"""A load average above it says that others are running."""

Result = dict[str, Any]


def machine() -> Result:
    """Describes the machine, and warns where it is not quiet."""
    load = os.getloadavg()[0]
    found: Result = {
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "load_average": load,
    }
    if load > QUIET:
        found["warning"] = f"load average {load:.2f}: others are running"
    return found


def machine_lines(found: Result) -> list[str]:
    """Writes what `machine` found for people."""
    return [
        f"{found['cpus']} CPUs ({found['processor']}), load average "
        f"{found['load_average']:.2f} at the start",
        *([f"WARNING: {found['warning']}"] if "warning" in found else []),
    ]


def run_process(
    name: str, command: list[str], folder: Path, environment: Mapping[str, str]
) -> Result:
    """Runs one process without a GPU; its last line of output is its result, in JSON.

    Args:
        name: what the process is, for people; its log is named after it.
        command: the program and its arguments.
        folder: where the log goes.
        environment: of the process.

    Returns:
        The result, with `wall_seconds` of the whole process.

    Raises:
        UserError: it failed.
    """
    log = folder / f"{name.replace(' ', '_')}.log"
    say(f"{name} ... (log: {log})")
    started = time.perf_counter()
    with log.open("w", encoding="utf-8") as stderr:
        done = subprocess.run(
            command,
            env={**environment, "CUDA_VISIBLE_DEVICES": "-1"},
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    wall = time.perf_counter() - started
    if done.returncode:
        text = log.read_text(encoding="utf-8", errors="replace").strip()
        if done.returncode != cli.EXIT_USER_ERROR:
            say(text)
        last = text.rpartition("\n")[2].removeprefix("error: ")
        raise UserError(f"{name} failed: {last or 'it said nothing'}")
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result | {"wall_seconds": wall}


def peak_memory() -> int:
    """Returns the most memory (bytes) that this process has had until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def say(line: str) -> None:
    """Tells progress, apart from the result."""
    print(line, file=sys.stderr, flush=True)


def _processor() -> str:
    """Returns the processor's name as Linux tells it, or its architecture."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [line for line in text.splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()
