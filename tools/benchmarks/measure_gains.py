"""Measures the gain of each optimized implementation.

    python tools/benchmarks/measure_gains.py --output gains.tsv

For each implementation and workload, the program runs in turn with and without the
implementation, in two pairs of processes that are started in opposite orders. The gain
is the time without it divided by the time with it; a time is the mean of the pairs'
medians. Each result is printed and immediately appended to the output file, with the
seconds per turn and the seconds from the start of the process to the end of its first
step or search. Rows that are already in the file are not measured again. The table of
`docs/explanation/optimized_implementations.md` has these gains.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED, choice, parser, several

from benchmarks import benchmark_decode, decoding
from benchmarks.in_turn import in_turn, own
from benchmarks.report import Result, markdown
from benchmarks.work import make_workload
from t2t_repro import fast
from t2t_repro.command_line import cli

TRAINED = ("base", "tiny")
SEARCHED = ("batch", "sentence")
STEPS = 4  # Training steps per turn.
COLUMNS = (
    *("name", "work", "gain"),
    *("seconds", "seconds_without", "start", "start_without"),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and measures the gains that the output file lacks."""
    works = (*TRAINED, *SEARCHED)
    # Only a GPU computes the loss in chunks.
    names = ",".join(name for name in fast.NAMES if name != "chunked_loss")
    args = parser(
        __doc__,
        ("output", cli.path, REQUIRED, "output file for gains (TSV)"),
        ("names", several(choice(fast.NAMES)), names, "names of implementations"),
        ("works", several(choice(works)), ",".join(works), "names of workloads"),
        ("rounds", cli.int_range(1), 5, "turns per process"),
        json_flag=False,
    ).parse_args(argv)
    output = Path(args.output)
    if not output.exists():
        output.write_text("\t".join(COLUMNS) + "\n")
    rows = [line.split("\t") for line in output.read_text().splitlines()[1:]]
    measured = {(name, work) for name, work, *_ in rows}
    try:
        with tempfile.TemporaryDirectory() as folder:
            search = _search(args, folder)
            for name, work in product(args.names, args.works):
                if (name, work) in measured:
                    continue
                times = _times(name, work, search, args.rounds)
                gain, start = times[1] / times[0], times[3] / times[2]
                print(f"{name:18} {work:9} {gain:.3f}, start {start:.3f}", flush=True)
                with output.open("a") as file:
                    numbers = (f"{number:.5f}" for number in (gain, *times))
                    file.write("\t".join([name, work, *numbers]) + "\n")
    finally:  # Prints the table also after Ctrl-C.
        print(table(output.read_text().splitlines()[1:], args.works))


def table(lines: Sequence[str], works: Sequence[str]) -> str:
    """Returns the gains as a Markdown table with one row per implementation."""
    gains: dict[str, dict[str, str]] = {}
    for name, work, gain, *_ in (line.split("\t") for line in lines):
        row = gains.setdefault(f"`{name}`", dict.fromkeys(works, ""))
        row[work] = f"{float(gain):.2f}"
    return "\n".join(markdown(gains))


def _times(name: str, work: str, search: Namespace, rounds: int) -> list[float]:
    """Times a program with and without an implementation.

    Returns the values of the last four `COLUMNS`.
    """
    task, fields, request, begin = _task(name, work, search)
    whole = own("whole", task, fields)
    without = own("without", task, fields | {"without": [name]})
    medians: dict[tuple[str, str], list[float]] = defaultdict(list)
    # The process that is started first can be 5 % slower in all its turns.
    for both in ((whole, without), (without, whole)):
        answers: dict[str, list[Result]] = defaultdict(list)
        turns = in_turn(both, [[request]] * rounds, Path(search.work_dir), begin=begin)
        for each, _, answer in turns:
            answers[each].append(answer)
        for key, each in product(("seconds", "start_seconds"), ("whole", "without")):
            medians[key, each].append(median(answer[key] for answer in answers[each]))
    return [mean(each) for each in medians.values()]


def _task(
    name: str, work: str, search: Namespace
) -> tuple[str, dict[str, Any], Any, Sequence[Any]]:
    """Returns the worker's task, its settings, the request and the warm-up requests."""
    # The implementations `xla_...` affect only programs that XLA compiles.
    xla = name.startswith("xla_")
    if work in TRAINED:
        sizes = (32, 32)
        if name == "local_attention":  # It is for long sentences.
            work, sizes = f"{work},self_attention_radius=16", (2, 1024)
        fields = asdict(make_workload(work, *sizes, 8000)) | {"xla": xla}
        return "training.train", fields, STEPS, [1, 1]
    fields = vars(search) | {"precision": "float32", "xla": xla}
    batch = f"batch of {search.batch_size}"
    request = batch if work == "batch" else decoding.SENTENCE
    return "decoding.t2t_repro", fields, request, decoding.BEGIN


def _search(args: Namespace, folder: str) -> Namespace:
    """Returns the search settings for `base` and writes its vocabulary."""
    search = benchmark_decode.parse(["--vocab_size", "37000"])
    search.work_dir = folder
    if {*args.works} & {*SEARCHED}:
        cli.start_tensorflow(args.verbose)
        decoding.write_vocabulary(Path(folder), search.vocab_size, search.seed)
    return search


if __name__ == "__main__":
    cli.run(main)
