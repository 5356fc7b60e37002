"""What machine this is, and whether others are running on it."""

import os
import platform
import sys
from pathlib import Path
from typing import Any

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
        say(f"warning: {found['warning']}")
    return found


def machine_lines(found: Result) -> list[str]:
    """Writes what `machine` found for people."""
    return [
        f"{found['cpus']} CPUs ({found['processor']}), load average "
        f"{found['load_average']:.2f} at the start",
        *([f"WARNING: {found['warning']}"] if "warning" in found else []),
    ]


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
