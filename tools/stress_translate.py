"""Translates a very long text, and shows that memory stays and a kill loses nothing.

    python tools/stress_translate.py --model_dir MODEL [--lines 1000000]

Translates short generated lines with a beam of 1 and compares the process's memory
after a tenth of them and at the end. Then it does so again, kills the process half-way
(SIGKILL), starts the same command again and compares both files, byte for byte. Exit
status 1 if memory grows by more than 5 % or the files differ.
"""

import filecmp
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_GROWTH = 1.05
_POLL_SECONDS = 0.2


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates three times and prints what was seen."""
    args = _parse(argv)
    with tempfile.TemporaryDirectory(dir=args.work_dir) as name:
        found = measure(args, Path(name))
    growth = found["memory_at_the_end"] / found["memory_after_a_tenth"]
    text = (
        f"{args.lines:,} lines in {found['seconds']:.0f} s: "
        f"{found['memory_after_a_tenth'] / 2**20:,.0f} MiB after a tenth, "
        f"{found['memory_at_the_end'] / 2**20:,.0f} MiB at the end, "
        f"{growth:.3f} times\n"
        f"killed after line {found['killed_after']:,}, started again: the files are "
        f"{'the same' if found['same'] else 'DIFFERENT'}"
    )
    cli.print_result(text, found | {"growth": growth}, args.json)
    if growth > MOST_GROWTH or not found["same"]:
        sys.exit(1)


def measure(args: Namespace, folder: Path) -> dict[str, Any]:
    """Translates a generated text whole, and once more with a kill, in a folder.

    Returns:
        `seconds` of the whole run, `memory_after_a_tenth` and `memory_at_the_end`
        (bytes), `killed_after` (lines), and whether the files are the `same`.
    """
    source = folder / "text"
    write_lines(source, args.lines)
    whole, killed = folder / "whole", folder / "killed"
    began = time.monotonic()
    process = _start(args, source, whole)
    tenth = _memory_when(process, whole, args.lines // 10)
    memory = tenth
    while process.poll() is None:
        memory = _memory(process) or memory
        time.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - began
    _check(process)

    process = _start(args, source, killed)
    _memory_when(process, killed, args.lines // 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed_after = _lines_done(killed)
    process = _start(args, source, killed)
    process.wait()
    _check(process)
    return {
        "lines": args.lines,
        "seconds": seconds,
        "memory_after_a_tenth": tenth,
        "memory_at_the_end": memory,
        "killed_after": killed_after,
        "same": filecmp.cmp(whole, killed, shallow=False),
    }


def write_lines(path: Path, count: int) -> None:
    """Writes lines of two to six words, the same ones every time."""
    generator = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            words = generator.choices(WORDS, k=generator.randint(2, 6))
            file.write(" ".join(words) + "\n")


def _start(args: Namespace, source: Path, target: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "t2t_repro.translate", "--beam_size", "1"]
    command += ["--model_dir", args.model_dir, "--batch_size", str(args.batch_size)]
    command += ["--input_file", str(source), "--output_file", str(target)]
    return subprocess.Popen(command)


def _check(process: subprocess.Popen[bytes]) -> None:
    if process.returncode:
        raise UserError(f"translate ended with status {process.returncode}")


def _memory_when(process: subprocess.Popen[bytes], target: Path, lines: int) -> int:
    """Waits until so many lines are translated; returns the memory then, bytes."""
    while process.poll() is None:
        if _lines_done(target) >= lines:
            return _memory(process)
        time.sleep(_POLL_SECONDS)
    _check(process)
    raise UserError("the text was translated too fast to be watched; give more --lines")


def _lines_done(target: Path) -> int:
    """Reads the last whole record of the journal beside an unfinished file."""
    journal = target.with_name(f"{target.name}.partial.journal")
    try:
        records = journal.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return 0
    whole = [record for record in records[1:] if record.endswith(b"\n")]
    return int(json.loads(whole[-1])["state"]["lines"]) if whole else 0


def _memory(process: subprocess.Popen[bytes]) -> int:
    """Returns the memory (resident set, bytes) of a process, 0 when it has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return 0
    sizes = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(sizes[0].split()[1]) * 1024 if sizes else 0


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Translates a very long text: memory stays, and a kill loses nothing."
    )
    add, lines = parser.add_argument, 1_000_000
    add("--model_dir", required=True, help="folder of a small model")
    add("--lines", type=cli.at_least(20), default=lines, help="lines to translate")
    add("--batch_size", type=cli.at_least(1), default=256, help="of translate")
    add("--work_dir", help="where the files go meanwhile")
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
