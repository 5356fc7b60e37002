"""Measures the gain of each optimized implementation.

    python tools/benchmarks/measure_gains.py --output gains.tsv

The program and the program without one implementation take turns, for every name and
kind of work. A gain is the time without it over the time with it, medians of the
rounds. It is printed and appended to the file at once, with the seconds of a turn and
those from the start of the process until its first step or search is done. A pair that
is in the file is not measured again. The table of
`docs/explanation/optimized_implementations.md` is made of its rows.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import one_of, several

from benchmarks import benchmark_decode, decoding
from benchmarks.in_turn import in_turn, own
from benchmarks.report import Result
from benchmarks.work import work_of
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
    """Parses the flags, and measures the pairs that the output file lacks."""
    args = _parse(argv)
    output = Path(args.output)
    if not output.exists():
        output.write_text("\t".join(COLUMNS) + "\n")
    rows = [line.split("\t") for line in output.read_text().splitlines()[1:]]
    done = {(name, work) for name, work, *_ in rows}
    with tempfile.TemporaryDirectory() as folder:
        search = _search(args, folder)
        for name in args.names:
            for work in args.works:
                if (name, work) in done:
                    continue
                times = _times(name, work, search, args.rounds)
                gain, start = times[1] / times[0], times[3] / times[2]
                print(f"{name:18} {work:9} {gain:.3f}, start {start:.3f}", flush=True)
                with output.open("a") as file:
                    numbers = (f"{number:.5f}" for number in (gain, *times))
                    file.write("\t".join([name, work, *numbers]) + "\n")
    print(table(output.read_text().splitlines()[1:], args.works))


def table(lines: Sequence[str], works: Sequence[str]) -> str:
    """Returns the rows of the file as Markdown: a row for each name."""
    gains: dict[str, dict[str, str]] = {}
    for name, work, gain, *_ in (line.split("\t") for line in lines):
        gains.setdefault(name, {})[work] = f"{float(gain):.2f}"
    head = ["name", *works]
    rows = [[f"`{n}`", *(row.get(w, "") for w in works)] for n, row in gains.items()]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)
    )


def _times(name: str, work: str, search: Namespace, rounds: int) -> list[float]:
    """Returns the values of the last four `COLUMNS`."""
    # These two change only programs that XLA compiles.
    task, given, request, begin = _task(work, search, name.startswith("xla_"))
    answers: dict[str, list[Result]] = {"whole": [], "without": []}
    contenders = [
        own("whole", task, given),
        own("without", task, given | {"without": [name]}),
    ]
    for each, _, answer in in_turn(
        contenders, [[request]] * rounds, Path(search.work_dir), begin=begin
    ):
        answers[each].append(answer)
    return [
        median(answer[key] for answer in answers[each])
        for key in ("seconds", "start_seconds")
        for each in answers
    ]


def _task(
    work: str, search: Namespace, xla: bool
) -> tuple[str, dict[str, Any], Any, Sequence[Any]]:
    """Returns the worker's task, its settings, the request, and the first requests."""
    if work in TRAINED:
        given = asdict(work_of(work, 32, 32, 8000)) | {"xla": xla}
        return "training.train", given, STEPS, [1, 1]
    given = vars(search) | {"precision": "float32", "xla": xla}
    alone = f"a batch of {search.batch_size} alone"
    request = alone if work == "batch" else decoding.SENTENCE
    return "decoding.t2t_repro", given, request, decoding.BEGIN


def _search(args: Namespace, folder: str) -> Namespace:
    """Returns the settings of a search of base; writes its vocabulary."""
    search = benchmark_decode._parse([])
    search.work_dir = folder
    if {*args.works} & {*SEARCHED}:
        cli.start_tensorflow(args.verbose)
        decoding.write_vocabulary(Path(folder), search.vocab_size, search.seed)
    return search


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Measures the gain of each optimized implementation.", json_flag=False
    )
    parser.add_argument("--output", required=True, help="file of the gains (TSV)")
    names = [name for name in fast.NAMES if name != "local_attention"]
    parser.add_argument(
        "--names",
        type=several(one_of(fast.NAMES)),
        default=",".join(names),
        help="optimized implementations, with commas between",
    )
    works = (*TRAINED, *SEARCHED)
    parser.add_argument(
        "--works",
        type=several(one_of(works)),
        default=",".join(works),
        help="a training step of a set, or the search of a batch or a sentence, with "
        "commas between",
    )
    parser.add_argument(
        "--rounds", type=cli.at_least(1), default=5, help="turns of each program"
    )
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
