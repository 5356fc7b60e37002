"""Benchmark results: tables of figures, printed and optionally recorded.

A result has the `machine`, the `settings`, the `versions` of other programs, and
`tables`: title -> row -> figure -> value. A value is a number, a text, or a list with
one number per round, whose median is reported.
"""

from __future__ import annotations

import csv
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import flags

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

RESULTS = Path(__file__).with_name("results.csv")
FIELDS = ("date", "commit", "machine", "command", "table", "row", "figure", "value")

QUIET = 0.5
"""Load average above which other programs disturb the benchmark."""

SPEED, MEMORY, START = "target tokens/s", "peak memory (MiB)", "first step (s)"
INSTRUCTIONS = "instruction set"

LIMITS = (
    *("ONEDNN_MAX_CPU_ISA", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS"),
    *("CT2_FORCE_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"),
)
"""Environment variables that limit the instruction set; recorded with the command."""

Result = dict[str, Any]


def parser(documentation: str | None, *rows: flags.Flag) -> cli.ArgumentParser:
    """Returns a parser with the given flags and those of every benchmark."""
    record = ("record", bool, False, f"append the figures to {RESULTS.name}")
    return flags.parser(documentation, record, *rows)


@contextmanager
def report_at_end(args: Namespace, versions: Iterable[str] = ()) -> Iterator[Result]:
    """Yields an empty result and prints it at the end of the context.

    It is also printed after Ctrl-C, SIGTERM (sent by `timeout`) or the failure of a
    program. With `--record`, also appends the figures to `results.csv`.

    Args:
        args: Flags of the benchmark.
        versions: Lines with the versions of other programs.
    """
    settings = {name: str(value) for name, value in vars(args).items()}
    result: Result = {"machine": machine(), "settings": settings}
    result |= {"versions": list(versions), "tables": {}}
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield result
    except (KeyboardInterrupt, UserError):
        if any(result["tables"].values()):
            say("interrupted; the figures so far:")
            _finish(result, args)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    _finish(result, args)


def _finish(result: Result, args: Namespace) -> None:
    cli.print_result(format_result(result), result, args.json)
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
    steps: int = 1,
) -> None:
    """Adds the figures of a program's turn to its row.

    Args:
        table: Table that gets the figures.
        name: Name of the program.
        answer: The program's answer, as yielded by `in_turn`.
        tokens: Number of target tokens in the whole turn.
        operations: Number of floating-point operations of matmuls in the whole turn.
        steps: Number of steps in the turn.
    """
    row, seconds = table.setdefault(name, {}), answer["seconds"]
    row.setdefault("ms", []).append(seconds / steps * 1e3)
    for figure, amount in ((SPEED, tokens), ("GFLOP/s", operations / 1e9)):
        if amount:
            row.setdefault(figure, []).append(amount / seconds)
    add_process(row, answer)
    say(f"  round {len(row['ms'])}: {name}: {format_value(row['ms'][-1])} ms")


def add_process(row: Result, answer: Result) -> None:
    """Adds the memory, start time and instruction set of a process to its row.

    They become the last columns.
    """
    row[MEMORY] = max(row.pop(MEMORY, 0), answer["memory"] / 2**20)
    row[START] = row.pop(START, answer["start_seconds"])
    row[INSTRUCTIONS] = row.pop(INSTRUCTIONS, "") or answer["instructions"]


def ratios(
    table: Result, pairs: Iterable[tuple[str, str]], figures: Iterable[str] = (SPEED,)
) -> Result:
    """Returns a table with the ratios of the median figures of pairs of rows."""
    return {
        f"{one} / {other}": {
            figure: median(table[one][figure]) / median(table[other][figure])
            for figure in figures
            if figure in table[one] and figure in table[other]
        }
        for one, other in pairs
        if one in table and other in table
    }


def format_result(result: Result) -> str:
    """Formats a result as Markdown."""
    described = result["machine"]
    load = described["load_average"]
    lines = [f"{_machine_line(described)}, load average {load:.2f}"]
    lines += [f"WARNING: {described['warning']}"] if "warning" in described else []
    lines += result["versions"]
    for title, rows in result["tables"].items():
        if rows:
            cells = {
                name: {figure: format_value(value) for figure, value in row.items()}
                for name, row in rows.items()
            }
            lines += ["", title, "", *markdown(cells)]
    return "\n".join(lines)


def markdown(rows: dict[str, dict[str, str]]) -> list[str]:
    """Formats a table as Markdown lines; cells of missing figures are empty."""
    figures = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    lines = [f"| | {' | '.join(figures)} |", "|---" * (len(figures) + 1) + "|"]
    for name, row in rows.items():
        cells = " | ".join(row.get(figure, "") for figure in figures)
        lines.append(f"| {name} | {cells} |")
    return lines


def format_value(value: Any) -> str:
    """Formats a number to three digits, and a list as its median and its elements."""
    if isinstance(value, list):
        each = ", ".join(map(format_value, value))
        return f"{format_value(median(value))} ({each})" if len(value) > 1 else each
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.3g}"


def records(result: Result) -> Iterator[list[str]]:
    """Yields the rows of `results.csv` for a result, in the order of `FIELDS`."""
    variables = [f"{each}={os.environ[each]}" for each in LIMITS if each in os.environ]
    command = shlex.join([*variables, "python", *sys.argv])
    command = command.replace(f"{RESULTS.parents[2]}/", "")
    run = [str(date.today()), _commit(), _machine_line(result["machine"]), command]
    for title, rows in result["tables"].items():
        for name, row in rows.items():
            for figure, value in row.items():
                middle = median(value) if isinstance(value, list) else value
                yield [*run, title, name, figure, format_value(middle).replace(",", "")]


def machine() -> Result:
    """Describes the machine, with a warning if other programs are running."""
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    description = {"cpus": cpus, "processor": _processor(), "load_average": load}
    if load > QUIET:
        warning = f"load average {load:.2f}: other programs are running"
        description["warning"] = warning
        say(f"warning: {warning}")
    return description


def say(line: str) -> None:
    """Prints a progress line to standard error."""
    print(line, file=sys.stderr, flush=True)


def _machine_line(machine: Result) -> str:
    devices = f"{machine['gpu']}, " if machine.get("gpu") else ""
    return f"{devices}{machine['cpus']} CPUs ({machine['processor']})"


def _commit() -> str:
    """Returns the revision of the checkout; "" without git."""
    command = f"git -C {shlex.quote(str(RESULTS.parent))} describe --always --dirty"
    return subprocess.getoutput(f"{command} 2>/dev/null")


def _processor() -> str:
    """Returns the processor's name from /proc/cpuinfo, or its architecture."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    name = re.search(r"^model name\s*: (.+)", text, re.MULTILINE)
    return name[1] if name else platform.machine()
