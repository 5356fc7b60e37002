"""Times a training step beside its limit and its peers, in turn, in one run.

    python tools/benchmark_training.py --sizes base --t2t_python t2t/bin/python
        --opennmt_python opennmt/bin/python --torch_python torch/bin/python

docs/speed.md says what is measured. Peers whose interpreter is not named are left out,
and the result says so. `--start_up` adds the real command's start; `--lengths` times
the sizes at several lengths instead of one, which `--plot` draws.
"""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.in_turn import Contender, in_turn, own, peer, peer_versions, printed
from benchmarks.machine import Result, machine, say
from benchmarks.start_up import StartUp
from benchmarks.training_report import (
    A_SQUARE,
    OURS,
    PRODUCTS,
    draw,
    summary,
    text_of,
)
from benchmarks.work import Work, work_of
from figures import style
from flags import one_of, several

from t2t_repro import fast, hparams
from t2t_repro.command_line import cli

FLOAT32 = ("float32",)
PRECISIONS = (*FLOAT32, "bfloat16")
PAPER = ", paper's dropout"


class Program(NamedTuple):
    """A program that trains, or a limit.

    Attributes:
        title: its name, for people.
        task: of `benchmarks.worker`, or the script of a peer.
        precisions: what it computes in.
        package: the peer's; "" for this one.
        flag: names the peer's interpreter.
    """

    title: str
    task: str
    precisions: Sequence[str] = PRECISIONS
    package: str = ""
    flag: str = ""


PROGRAMS = {
    "t2t_repro": Program(OURS, "training.train"),
    "products": Program(PRODUCTS, "training.products"),
    "square": Program(A_SQUARE, "training.square"),
    "tensor2tensor": Program(
        "tensor2tensor",
        "tensor2tensor_speed.py",
        precisions=FLOAT32,
        package="tensor2tensor",
        flag="t2t_python",
    ),
    "opennmt": Program(
        "OpenNMT-tf",
        "opennmt_training.py",
        precisions=FLOAT32,
        package="OpenNMT-tf",
        flag="opennmt_python",
    ),
    "torch": Program(
        "PyTorch", "torch_training.py", package="torch", flag="torch_python"
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parse(argv)
    if args.plot:
        style.require_matplotlib()
    peers = {PROGRAMS[key].title: _version(key, args) for key in args.only}
    peers = {title: told for title, told in peers.items() if told}
    found = {"cases": [], "start_up": {size: [] for size in args.start_up}}
    result: Result = {"peers": peers, "settings": vars(args), **found}
    result["machine"] = machine()
    with (
        tempfile.TemporaryDirectory() as folder,
        printed(result, text_of, args.json),
    ):
        for work in _works(args):
            _time(work, args, Path(folder), result["cases"])
        _time_start_up(args, Path(folder), result["start_up"])
        if args.plot:
            draw(result["cases"], Path(args.plot))


def _works(args: Namespace) -> Iterator[Work]:
    """Yields what is computed: every size, at one length or at several."""
    for size in args.sizes:
        for length in args.lengths or [args.length]:
            rows = max(args.curve_tokens // length, 1)
            batch_size = rows if args.lengths else args.batch_size
            yield work_of(size, batch_size, length, args.vocab_size)


def _time(work: Work, args: Namespace, folder: Path, cases: list[Result]) -> None:
    """Times all contenders on one work; `cases` gets what is known at any moment."""
    say(f"{work.size}, {work.batch_size} x {work.length} tokens:")
    cases.append(summary(work, {}))
    found: dict[str, list[Result]] = {}
    for name, steps, answer in in_turn(
        contenders(work, args),
        [[args.steps]] * args.rounds,
        folder,
        begin=[1, 1],  # The first is slower.
        one_by_one=args.one_by_one,
    ):
        answer["seconds"] /= steps
        found.setdefault(name, []).append(answer)
        cases[-1] = summary(work, found)
        say(f"  round {len(found[name])}: {name} {answer['seconds']:.3f} s a step")


def contenders(work: Work, args: Namespace) -> list[Contender]:
    """Returns who is there; PyTorch twice, with its own dropout and the paper's."""
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


def _version(key: str, args: Namespace) -> str:
    """Returns a peer's version, or why it is left out; "" of what is no peer."""
    program = PROGRAMS[key]
    if not program.package:
        return ""
    python = getattr(args, program.flag)
    if not python:
        return f"left out: --{program.flag} names no interpreter"
    return peer_versions(python, f"--{program.flag}", program.package)


def _time_start_up(
    args: Namespace, folder: Path, found: dict[str, list[float]]
) -> None:
    """Times the real command's first update, the sizes in turn."""
    if not found:
        return
    tokens = args.batch_size * args.length
    start_up = StartUp(folder, tokens, min(2 * args.length, tokens))
    for number in range(1, args.rounds + 1):
        for size, seconds in found.items():
            seconds.append(start_up.first_update(size))
            say(f"  round {number}: {size} {seconds[-1]:.1f} s to its first update")


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times a training step beside the machine's limit and beside its peers."
    )
    add, count = parser.add_argument, cli.at_least(1)
    sets = hparams.names()
    add(
        "--sizes",
        type=several(one_of(sets)),
        default="base",
        help="hyper-parameter sets, with commas between",
    )
    add("--batch_size", type=count, default=32, help="sentence pairs of a step")
    add("--length", type=cli.at_least(2), default=32, help="tokens of a sentence")
    add("--vocab_size", type=cli.at_least(8), default=8000, help="subwords")
    add(
        "--precision",
        type=several(one_of(PRECISIONS)),
        default="float32,bfloat16",
        help="with commas between",
    )
    add(
        "--only",
        type=several(one_of(PROGRAMS)),
        default=",".join(PROGRAMS),
        help="programs, with commas between",
    )
    add(
        "--without",
        type=several(one_of(fast.NAMES)),
        default="",
        help="optimized implementations without each of which t2t_repro is timed once "
        "more, with commas between",
    )
    add("--rounds", type=count, default=5, help="turns of each contender")
    add("--steps", type=count, default=4, help="steps of a turn")
    add(
        "--one_by_one",
        action="store_true",
        help="start each process anew for every turn, where not all fit into memory",
    )
    for program in PROGRAMS.values():
        if program.flag:
            add(f"--{program.flag}", help=f"an interpreter that has {program.package}")
    add(
        "--start_up",
        type=several(one_of(sets)),
        default="",
        help="sets whose start-up is timed, as the command trains them on the "
        "built-in corpus, with commas between",
    )
    add(
        "--lengths",
        type=several(cli.at_least(2)),
        default="",
        help="tokens of a sentence, several with commas between, in place of --length",
    )
    add("--curve_tokens", type=count, default=2048, help="tokens of their steps")
    add("--plot", help="file that gets their picture, e.g. curve.svg")
    args: Namespace = parser.parse_args(argv)
    if args.plot and not args.lengths:
        parser.error("--plot draws speed against length: say --lengths too")
    return args


if __name__ == "__main__":
    cli.run(main)
