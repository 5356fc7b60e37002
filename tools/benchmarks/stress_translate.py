"""Translates a very long text and checks that memory does not grow.

    python tools/benchmarks/stress_translate.py --model_dir MODEL [--lines 1000000]

Translates short generated lines with a beam size of 1 and compares the memory of the
process after a tenth of the lines and at the end. Exits with status 1 if memory grows
by more than 5 %.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import report
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_GROWTH = 1.05
_POLL_SECONDS = 0.2


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the translation and prints the figures."""
    args = _parse(argv)
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
        records = journal.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return 0
    whole = [record for record in records[1:] if record.endswith(b"\n")]
    return int(json.loads(whole[-1])["state"]["lines"]) if whole else 0


def _memory(process: subprocess.Popen[bytes]) -> int:
    """Returns the resident memory of a process in bytes; 0 after its end."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return 0
    sizes = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(sizes[0].split()[1]) * 1024 if sizes else 0


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = report.parser(
        "Translates a very long text and checks that memory does not grow."
    )
    add, lines = parser.add_argument, 1_000_000
    add("--model_dir", required=True, help="model directory of a small model")
    text = "number of lines to translate"
    add("--lines", type=cli.at_least(20), default=lines, help=text)
    text = "sentences per batch"
    add("--batch_size", type=cli.at_least(1), default=256, help=text)
    add("--work_dir", help="directory for temporary files")
    return parser.parse_args(argv)


if __name__ == "__main__":
    cli.run(main)
