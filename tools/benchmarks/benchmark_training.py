"""Times a training step of t2t_repro and of other toolkits in one run.

    python tools/benchmarks/benchmark_training.py --sizes base
        --t2t_python t2t/bin/python --opennmt_python opennmt/bin/python
        --torch_python torch/bin/python

docs/speed.md describes the measurement. Programs without an interpreter flag are
skipped and listed in the result.
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import choice, several
from model_costs import training_flops

from benchmarks import report
from benchmarks.in_turn import Contender, in_turn, own, peer, peer_versions
from benchmarks.report import Result, say
from benchmarks.work import Work, make_workload
from t2t_repro import hparams
from t2t_repro.command_line import cli

OURS = "t2t_repro"
FLOAT32 = ("float32",)
PRECISIONS = (*FLOAT32, "bfloat16")
PAPER = ", paper's dropout"


class Program(NamedTuple):
    """A training program.

    Attributes:
        title: Name in the tables.
        task: Task of `benchmarks.worker`, or script of another program.
        precisions: Supported precisions.
        package: Package of another program; "" for t2t_repro.
        flag: Flag with the other program's interpreter.
    """

    title: str
    task: str
    precisions: Sequence[str] = PRECISIONS
    package: str = ""
    flag: str = ""


PROGRAMS = {
    "t2t_repro": Program(OURS, "training.train"),
    "tensor2tensor": Program(
        *("tensor2tensor", "tensor2tensor_speed.py", FLOAT32, "tensor2tensor"),
        flag="t2t_python",
    ),
    "opennmt": Program(
        "OpenNMT-tf", "opennmt_training.py", FLOAT32, "OpenNMT-tf", "opennmt_python"
    ),
    "torch": Program(
        "PyTorch", "torch_training.py", package="torch", flag="torch_python"
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    args = _parse(argv)
    versions = filter(None, [_version(PROGRAMS[key], args) for key in args.only])
    with (
        tempfile.TemporaryDirectory() as name,
        report.report_at_end(args, versions) as result,
    ):
        for size in args.sizes:
            work = make_workload(size, args.batch_size, args.length, args.vocab_size)
            _time(work, args, Path(name), result)


def _time(work: Work, args: Namespace, folder: Path, result: Result) -> None:
    """Times all programs on one workload; `result` gets its table."""
    pair = training_flops(
        hparams.load(work.size), work.vocab_size, work.length, work.length
    )
    title = (
        f"{work.size}, {work.batch_size} x {work.length} tokens, {work.vocab_size:,} "
        f"subwords, {pair / work.length / 1e9:.3f} GFLOP per token"
    )
    say(f"{title}:")
    table: Result = {}
    result["tables"][title] = table
    for name, steps, answer in in_turn(
        contenders(work, args),
        [[args.steps]] * args.rounds,
        folder,
        begin=[1, 1],  # Warm-up: the first steps are slower.
        one_by_one=args.one_by_one,
    ):
        tokens = answer.get("target_tokens", steps * work.tokens)
        operations = steps * work.batch_size * pair
        report.add_turn(
            table, name, answer, tokens=tokens, operations=operations, steps=steps
        )
        result["tables"][f"{title}: ratios"] = report.ratios(table, pairs(table))


def pairs(table: Result) -> list[tuple[str, str]]:
    """Pairs each row of t2t_repro with all other rows of the same precision."""
    return [
        (f"{OURS} {precision}", other)
        for precision in PRECISIONS
        for other in table
        if f" {precision}" in other and other != f"{OURS} {precision}"
    ]


def contenders(work: Work, args: Namespace) -> list[Contender]:
    """Returns the programs to time.

    PyTorch runs twice: with its own dropout and with the paper's.
    """
    programs = []
    for key, precision in product(args.only, args.precision):
        program = PROGRAMS[key]
        python = getattr(args, program.flag, None)
        if precision not in program.precisions or (program.flag and not python):
            continue
        title = f"{program.title} {precision}"
        fields = asdict(replace(work, precision=precision))
        if python:
            for paper in (False, True) if key == "torch" else (False,):
                work_of_peer = json.dumps(fields | {"paper_dropout": paper})
                name = f"{title}{PAPER * paper}"
                programs.append(peer(name, python, program.task, work_of_peer))
        else:
            programs.append(own(title, program.task, fields))
    return programs


def _version(program: Program, args: Namespace) -> str:
    """Returns another program's version or the reason to skip it; "" for t2t_repro."""
    if not program.package:
        return ""
    python = getattr(args, program.flag)
    if not python:
        return f"{program.title} is skipped: --{program.flag} is not given"
    return peer_versions(python, f"--{program.flag}", program.package)


def _parse(argv: Sequence[str] | None) -> Namespace:
    count, listed = cli.int_range(1), "separated by commas"
    sets = several(choice(hparams.names()))
    precisions, programs = several(choice(PRECISIONS)), several(choice(PROGRAMS))
    parser = report.parser(
        __doc__,
        ("sizes", sets, "base", f"hyper-parameter sets, {listed}"),
        ("batch_size", count, 32, "sentence pairs per step"),
        ("length", cli.int_range(2), 32, "tokens per sentence"),
        ("vocab_size", cli.int_range(8), 8000, "number of subwords"),
        ("precision", precisions, ",".join(PRECISIONS), f"precisions, {listed}"),
        ("only", programs, ",".join(PROGRAMS), f"programs, {listed}"),
        ("rounds", count, 5, "turns per program"),
        ("steps", count, 4, "steps per turn"),
        ("one_by_one", bool, False, "start a process for every turn, to save memory"),
        *(
            (each.flag, str, None, f"Python interpreter with {each.package}")
            for each in PROGRAMS.values()
            if each.flag
        ),
    )
    args: Namespace = parser.parse_args(argv)
    return args


if __name__ == "__main__":
    cli.run(main)
