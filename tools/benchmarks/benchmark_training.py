"""Times a training step, its limit and other programs, in turn, in one run.

    python tools/benchmarks/benchmark_training.py --sizes base
        --t2t_python t2t/bin/python --opennmt_python opennmt/bin/python
        --torch_python torch/bin/python

docs/speed.md describes the work. A program whose interpreter is not named is
skipped, and the result names it. `--start_up` adds the start of the real command;
`--lengths` times the sizes at several lengths instead of one, which `--plot` draws.
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import style
from flags import one_of, several

from benchmarks import report
from benchmarks.in_turn import Contender, in_turn, own, peer, peer_versions
from benchmarks.report import Result, say
from benchmarks.start_up import StartUp
from benchmarks.work import SQUARE, Work, flops, products_of, work_of
from t2t_repro import fast, hparams
from t2t_repro.command_line import cli

OURS, A_SQUARE = "t2t_repro", "a square product"
FLOAT32 = ("float32",)
PRECISIONS = (*FLOAT32, "bfloat16")
PAPER = ", paper's dropout"


class Program(NamedTuple):
    """A program that trains, or a limit.

    Attributes:
        title: its name in the tables.
        task: task of `benchmarks.worker`, or the script of another program.
        precisions: the precisions that it computes in.
        package: package of another program; "" for this one.
        flag: flag that names the other program's interpreter.
    """

    title: str
    task: str
    precisions: Sequence[str] = PRECISIONS
    package: str = ""
    flag: str = ""


PROGRAMS = {
    "t2t_repro": Program(OURS, "training.train"),
    "products": Program("products of the step", "training.products"),
    "square": Program(A_SQUARE, "training.square"),
    "tensor2tensor": Program(
        "tensor2tensor",
        *("tensor2tensor_speed.py", FLOAT32, "tensor2tensor", "t2t_python"),
    ),
    "opennmt": Program(
        "OpenNMT-tf", "opennmt_training.py", FLOAT32, "OpenNMT-tf", "opennmt_python"
    ),
    "torch": Program(
        "PyTorch", "torch_training.py", PRECISIONS, "torch", "torch_python"
    ),
}

Curves = dict[str, dict[str, list[tuple[int, float]]]]
"""Size -> program -> (tokens of a sentence, target tokens a second)."""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parse(argv)
    if args.plot:
        style.require_matplotlib()
    versions = filter(None, [_version(PROGRAMS[key], args) for key in args.only])
    curves: Curves = {}
    with (
        tempfile.TemporaryDirectory() as name,
        report.reported(args, versions) as result,
    ):
        for size in args.sizes:
            for length in args.lengths or [args.length]:
                rows = max(args.curve_tokens // length, 1)
                batch_size = rows if args.lengths else args.batch_size
                work = work_of(size, batch_size, length, args.vocab_size)
                for program, row in _time(work, args, Path(name), result).items():
                    points = curves.setdefault(size, {}).setdefault(program, [])
                    points.append((length, median(row[report.SPEED])))
        _time_start_up(args, Path(name), result["tables"])
        if args.plot:
            draw(curves, Path(args.plot))


def _time(work: Work, args: Namespace, folder: Path, result: Result) -> Result:
    """Times all programs on one work; returns the rows of its table."""
    operations = flops(products_of(work))
    title = (
        f"{work.size}, {work.batch_size} x {work.length} tokens, {work.vocab_size:,} "
        f"subwords, {operations / work.tokens / 1e9:.3f} GFLOP a token"
    )
    say(f"{title}:")
    table: Result = {}
    result["tables"][title] = table
    for name, steps, answer in in_turn(
        contenders(work, args),
        [[args.steps]] * args.rounds,
        folder,
        begin=[1, 1],  # The first is slower.
        one_by_one=args.one_by_one,
    ):
        # A square product counts as a step that runs all its products as fast.
        done = flops(SQUARE) if name.startswith(A_SQUARE) else operations
        tokens = answer.get("target_tokens", steps * work.tokens) * done / operations
        report.add_turn(
            table, name, answer, tokens=tokens, operations=steps * done, steps=steps
        )
        result["tables"][f"{title}: ratios"] = report.ratios(table, pairs(table))
    return table


def pairs(table: Result) -> list[tuple[str, str]]:
    """Returns the rows of t2t_repro, each with every other row of its precision."""
    return [
        (f"{OURS} {precision}", other)
        for precision in PRECISIONS
        for other in table
        if f" {precision}" in other and other != f"{OURS} {precision}"
    ]


def contenders(work: Work, args: Namespace) -> list[Contender]:
    """Returns the programs; PyTorch twice, with its own dropout and the paper's."""
    found = []
    for key in args.only:
        program = PROGRAMS[key]
        python = getattr(args, program.flag, None)
        for precision in filter(program.precisions.__contains__, args.precision):
            for paper in (False, True) if key == "torch" and python else (False,):
                name = f"{program.title} {precision}{PAPER * paper}"
                given = asdict(replace(work, precision=precision, paper_dropout=paper))
                if not program.package:
                    found.append(own(name, program.task, given))
                    for each in args.without if key == "t2t_repro" else ():
                        less = given | {"without": [each]}
                        found.append(own(f"{name} without {each}", program.task, less))
                elif python:
                    found.append(peer(name, python, program.task, json.dumps(given)))
    return found


def _version(program: Program, args: Namespace) -> str:
    """Returns another program's version, or why it is skipped; "" of this package."""
    if not program.package:
        return ""
    python = getattr(args, program.flag)
    if not python:
        return f"{program.title} is skipped: --{program.flag} names no interpreter"
    return peer_versions(python, f"--{program.flag}", program.package)


def _time_start_up(args: Namespace, folder: Path, tables: Result) -> None:
    """Times the real command's first step, the sizes in turn."""
    if not args.start_up:
        return
    tokens = args.batch_size * args.length
    start_up = StartUp(folder, tokens, min(2 * args.length, tokens))
    table = tables["python -m t2t_repro.train, start to first step"] = {}
    for _ in range(args.rounds):
        for size in args.start_up:
            seconds = table.setdefault(size, {}).setdefault("s", [])
            seconds.append(start_up.first_update(size))
            say(f"  round {len(seconds)}: {size} {seconds[-1]:.1f} s to its first step")


def draw(curves: Curves, path: Path) -> None:
    """Draws speed against sentence length: a panel a size, a line a program."""
    with style.styled():
        figure, panels = style.panels(len(curves))
        for axes, (size, lines) in zip(panels, curves.items(), strict=True):
            for number, (name, points) in enumerate(lines.items()):
                lengths, speeds = zip(*points, strict=True)
                axes.plot(lengths, speeds, label=name, marker="o", **style.line(number))
            axes.set(title=size, xlabel="tokens of a sentence", ylim=(0, None))
            axes.set_xscale("log", base=2)
            axes.set_xticks(lengths, [str(length) for length in lengths])
            axes.minorticks_off()
        panels[0].set_ylabel(report.SPEED)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        figure.savefig(path, metadata={"Date": None})


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = report.parser(
        "Times a training step, the machine's limit and other programs."
    )
    add, count = parser.add_argument, cli.at_least(1)
    sets, some = one_of(hparams.names()), "with commas between"
    for name, kind, default, text in (
        ("sizes", several(sets), "base", f"hyper-parameter sets, {some}"),
        ("batch_size", count, 32, "sentence pairs of a step"),
        ("length", cli.at_least(2), 32, "tokens of a sentence"),
        ("vocab_size", cli.at_least(8), 8000, "subwords"),
        ("precision", several(one_of(PRECISIONS)), ",".join(PRECISIONS), some),
        ("only", several(one_of(PROGRAMS)), ",".join(PROGRAMS), f"programs, {some}"),
        (
            "without",
            several(one_of(fast.NAMES)),
            "",
            "optimizations, each left out once",
        ),
        ("rounds", count, 5, "turns of each program"),
        ("steps", count, 4, "steps of a turn"),
        ("start_up", several(sets), "", f"sets whose start is timed, {some}"),
        ("lengths", several(cli.at_least(2)), "", f"instead of --length, {some}"),
        ("curve_tokens", count, 2048, "tokens of a step with --lengths"),
    ):
        add(f"--{name}", type=kind, default=default, help=text)
    alone = "start each process anew for every turn, if not all fit into memory"
    add("--one_by_one", action="store_true", help=alone)
    for program in PROGRAMS.values():
        if program.flag:
            add(f"--{program.flag}", help=f"an interpreter that has {program.package}")
    add("--plot", help="file for their picture, e.g. curve.svg")
    args: Namespace = parser.parse_args(argv)
    if args.plot and not args.lengths:
        parser.error("--plot draws speed against length: give --lengths too")
    return args


if __name__ == "__main__":
    cli.run(main)
