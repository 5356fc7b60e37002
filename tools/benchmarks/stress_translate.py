"""Translates a very long text and checks that memory does not grow.

    python tools/benchmarks/stress_translate.py --model_dir MODEL [--lines 1000000]

Translates short generated lines with a beam size of 1 and compares the memory of the
process after a tenth of the lines and at the end. Exits with status 1 if memory grows
by more than 5 %.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED

from benchmarks import report
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_GROWTH = 1.05
_POLL_SECONDS = 0.2


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the translation and prints the figures."""
    args = report.parser(
        __doc__,
        ("model_dir", str, REQUIRED, "model directory of a small model"),
        ("lines", cli.at_least(20), 1_000_000, "number of lines to translate"),
        ("batch_size", cli.at_least(1), 256, "sentences per batch"),
        ("work_dir", str, None, "directory for temporary files"),
    ).parse_args(argv)
    with (
        tempfile.TemporaryDirectory(dir=args.work_dir) as name,
        report.reported(args) as result,
    ):
        row: Result = {}
        result["tables"]["a long text"] = {f"{args.lines:,} lines": row}
        measure(args, Path(name), row)
    if row["memory ratio"] > MOST_GROWTH:
        sys.exit(1)


def measure(args: Namespace, folder: Path, row: Result) -> None:
    """Translates a generated text; `row` gets the time and the memory."""
    source, target = folder / "text", folder / "translations"
    write_lines(source, args.lines)
    command = [sys.executable, "-m", "t2t_repro.translate", "--beam_size", "1"]
    command += ["--model_dir", args.model_dir, "--batch_size", str(args.batch_size)]
    command += ["--input_file", str(source), "--output_file", str(target)]
    tenth, began = "MiB after a tenth", time.monotonic()
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            memory = _memory(process) / 2**20
            row["MiB at the end"] = memory or row.get("MiB at the end", 0)
            if tenth not in row and _lines_done(target) >= args.lines // 10:
                row[tenth] = memory
            time.sleep(_POLL_SECONDS)
    row["s"] = time.monotonic() - began
    if process.returncode:
        raise UserError(f"translate exited with status {process.returncode}")
    if not row.get(tenth):
        raise UserError(
            "the translation finished before its memory was measured: increase --lines"
        )
    row["lines/s"] = args.lines / row["s"]
    row["memory ratio"] = row["MiB at the end"] / row[tenth]


def write_lines(path: Path, count: int) -> None:
    """Writes lines of two to six words, generated with a fixed seed."""
    generator = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            words = generator.choices(WORDS, k=generator.randint(2, 6))
            file.write(" ".join(words) + "\n")


def _lines_done(target: Path) -> int:
    """Returns the number of translated lines from the journal of a partial output."""
    journal = target.with_name(f"{target.name}.partial.journal")
    try:
        _, *records, _incomplete = journal.read_bytes().split(b"\n")
    except (FileNotFoundError, ValueError):
        return 0
    return int(json.loads(records[-1])["state"]["lines"]) if records else 0


def _memory(process: subprocess.Popen[bytes]) -> int:
    """Returns the resident memory of a process in bytes; 0 after its end."""
    try:
        pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return 0
    return int(pages[1]) * resource.getpagesize()


if __name__ == "__main__":
    cli.run(main)
