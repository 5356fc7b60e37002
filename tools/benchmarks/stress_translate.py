"""Translates a very long text and checks that memory does not grow.

    python tools/benchmarks/stress_translate.py --model_dir MODEL [--lines 1000000]

Translates short generated lines with a beam size of 1, a tenth of them and then all,
and compares the peak memory of both processes. Exits with status 1 if it differs by
more than 5 %.
"""

import random
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED

from benchmarks import report
from benchmarks.report import Result
from benchmarks.start_up import measure_usage
from t2t_repro.command_line import cli

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MOST_GROWTH = 1.05
TENTH, ALL = "MiB for a tenth", "MiB for all"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the translation and prints the figures."""
    args = report.parser(
        __doc__,
        ("model_dir", cli.path, REQUIRED, "model directory of a small model"),
        ("lines", cli.int_range(20), 1_000_000, "number of lines to translate"),
        ("batch_size", cli.int_range(1), 256, "sentences per batch"),
        ("work_dir", cli.path, None, "directory for temporary files"),
    ).parse_args(argv)
    with (
        tempfile.TemporaryDirectory(dir=args.work_dir) as name,
        report.report_at_end(args) as result,
    ):
        row: Result = {}
        result["tables"]["a long text"] = {f"{args.lines:,} lines": row}
        measure(args, Path(name), row)
    if row["memory ratio"] > MOST_GROWTH:
        sys.exit(1)


def measure(args: Namespace, folder: Path, row: Result) -> None:
    """Translates a tenth of a text, then all of it; `row` gets time and memory."""
    source, target = folder / "text", folder / "translations"
    flags = ["--model_dir", args.model_dir, "--batch_size", str(args.batch_size)]
    flags += ["--input_file", str(source), "--output_file", str(target)]
    for figure, lines in ((TENTH, args.lines // 10), (ALL, args.lines)):
        write_lines(source, lines)
        target.unlink(missing_ok=True)
        usage = measure_usage("-m", "t2t_repro.translate", "--beam_size", "1", *flags)
        row[figure] = usage.memory / 2**20
    row["s"] = usage.seconds
    row["lines/s"] = args.lines / row["s"]
    row["memory ratio"] = row[ALL] / row[TENTH]


def write_lines(path: Path, count: int) -> None:
    """Writes lines of two to six words, generated with a fixed seed."""
    generator = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            words = generator.choices(WORDS, k=generator.randint(2, 6))
            file.write(" ".join(words) + "\n")


if __name__ == "__main__":
    cli.run(main)
