"""The result of a benchmark: tables of figures, printed and, on request, recorded.

A result has the `machine`, the `settings`, the `versions` of other programs, and
`tables`: title -> row -> figure -> a number or text, or a list of numbers, one for each
round, of which the median counts.
"""

from __future__ import annotations

import csv
import os
import platform
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from t2t_repro.command_line import cli

RESULTS = Path(__file__).with_name("results.csv")
FIELDS = ("date", "commit", "machine", "command", "table", "row", "figure", "value")

QUIET = 0.5
"""Load average above which other programs are running."""

SPEED, MEMORY, START = "target tokens/s", "MiB at most", "first step (s)"

Result = dict[str, Any]


def parser(description: str) -> cli.ArgumentParser:
    """Returns a parser with the flags of every benchmark."""
    found = cli.ArgumentParser(description)
    text = f"append the figures to {RESULTS.name}"
    found.add_argument("--record", action="store_true", help=text)
    return found


@contextmanager
def reported(args: Namespace, versions: Iterable[str] = ()) -> Iterator[Result]:
    """Yields an empty result, and prints it at the end or after Ctrl-C.

    With `--record` the figures are appended to `results.csv`.

    Args:
        args: the flags.
        versions: lines about the other programs.
    """
    settings = {name: str(value) for name, value in vars(args).items()}
    result: Result = {"machine": machine(), "settings": settings}
    result |= {"versions": list(versions), "tables": {}}
    try:
        yield result
    except KeyboardInterrupt:
        say("interrupted; the figures so far:")
        _finish(result, args)
        raise
    _finish(result, args)


def _finish(result: Result, args: Namespace) -> None:
    cli.print_result(text_of(result), result, args.json)
    if args.record:
        with RESULTS.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(records(result))


def add_turn(
    table: Result,
    name: str,
    answer: Result,
    *,
    tokens: float = 0,
    operations: float = 0,
    moved: int = 0,
    steps: int = 1,
) -> None:
    """Adds a turn of a program to its row.

    Args:
        table: the rows.
        name: the program.
        answer: its answer, as `in_turn` yields it.
        tokens: target tokens of the whole turn.
        operations: floating-point operations in its matrix products.
        moved: bytes that it reads and writes.
        steps: into which the turn is divided.
    """
    row, seconds = table.setdefault(name, {}), answer["seconds"]
    for figure, value in (
        ("ms", seconds / steps * 1e3),
        (SPEED, tokens / seconds),
        ("GFLOP/s", operations / seconds / 1e9),
        ("GB/s", moved / seconds / 1e9),
    ):
        if value:
            row.setdefault(figure, []).append(value)
    row[MEMORY] = max(row.get(MEMORY, 0), answer["memory"] / 2**20)
    row.setdefault(START, answer["start_seconds"])
    say(f"  round {len(row['ms'])}: {name}: {written(row['ms'][-1])} ms")


def ratios(table: Result, pairs: Iterable[tuple[str, str]]) -> Result:
    """Returns a table of how many times as fast one row of a table is as another."""
    speeds = {name: median(row[SPEED]) for name, row in table.items()}
    return {
        f"{one} / {other}": {"times as fast": speeds[one] / speeds[other]}
        for one, other in pairs
        if one in speeds and other in speeds
    }


def text_of(result: Result) -> str:
    """Writes a result as Markdown."""
    found = result["machine"]
    lines = [f"{_machine_line(found)}, load average {found['load_average']:.2f}"]
    lines += [f"WARNING: {found['warning']}"] if "warning" in found else []
    lines += result["versions"]
    for title, rows in result["tables"].items():
        if rows:
            cells = {
                name: {figure: written(value) for figure, value in row.items()}
                for name, row in rows.items()
            }
            lines += ["", title, "", *markdown(cells)]
    return "\n".join(lines)


def markdown(rows: dict[str, dict[str, str]]) -> list[str]:
    """Writes a table; a row without a figure has an empty cell."""
    figures = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    lines = [f"| | {' | '.join(figures)} |", "|---" * (len(figures) + 1) + "|"]
    for name, row in rows.items():
        cells = " | ".join(row.get(figure, "") for figure in figures)
        lines.append(f"| {name} | {cells} |")
    return lines


def written(value: Any) -> str:
    """Writes a number to three digits; of a list the median and each."""
    if isinstance(value, list):
        each = ", ".join(map(written, value))
        return f"{written(median(value))} ({each})" if len(value) > 1 else each
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"


def records(result: Result) -> Iterator[list[str]]:
    """Yields the lines of `results.csv` for a result, in the order of `FIELDS`."""
    command = shlex.join(["python", *sys.argv]).replace(f"{RESULTS.parents[2]}/", "")
    known = [str(date.today()), _commit(), _machine_line(result["machine"]), command]
    for title, rows in result["tables"].items():
        for name, row in rows.items():
            for figure, value in row.items():
                middle = median(value) if isinstance(value, list) else value
                yield [*known, title, name, figure, written(middle).replace(",", "")]


def machine() -> Result:
    """Describes the machine, and warns if other programs are running."""
    load = os.getloadavg()[0]
    found: Result = {
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "load_average": load,
    }
    if load > QUIET:
        found["warning"] = f"load average {load:.2f}: other programs are running"
        say(f"warning: {found['warning']}")
    return found


def say(line: str) -> None:
    """Prints progress on standard error, apart from the result."""
    print(line, file=sys.stderr, flush=True)


def _machine_line(found: Result) -> str:
    devices = f"{found['gpu']}, " if found.get("gpu") else ""
    return f"{devices}{found['cpus']} CPUs ({found['processor']})"


def _commit() -> str:
    """Returns the revision of the checkout, "" where git is absent."""
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    """Returns the processor's name from /proc/cpuinfo, or its architecture."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [line for line in text.splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()
