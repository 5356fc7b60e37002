"""Times a training step beside its limit and its peers, in turn, in one run.

    python tools/benchmark_training.py --sizes base --t2t_python t2t/bin/python
        --opennmt_python opennmt/bin/python --torch_python torch/bin/python

Every contender trains a Transformer of the same size on random full sentences, the
same number on both sides: dropout 0.1, label smoothing 0.1, one table for both
embeddings and the softmax, Adam; forward, backward and update. t2t_repro runs its real
loop with its real pipeline. Each is a process of its own; they take turns, so that
what disturbs the machine disturbs all. The median round counts. Peers whose
interpreter is not named are left out, and the result says so.

Two limits stand beside them, timed in the same way: "products of the step" runs the
step's matrix products alone, in their shapes; "a square product" says what the machine
does with one of 2,048 by 2,048.

PyTorch appears twice: as nn.Transformer is, with dropout on attention weights and
hidden units too, and with the paper's dropout, as all others have it.

Then the real command's start-up (`--start_up`), and speed against the length of
sentences and the size of the model (`--lengths`), which `--plot` draws.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarking import Result, machine, say
from training_speed.contenders import (
    OURS,
    PEERS,
    PRECISIONS,
    PRODUCTS,
    PROGRAMS,
    Contender,
    Work,
    contenders,
    flag_of,
    work_of,
)
from training_speed.in_turn import time_in_turn
from training_speed.report import series, summary, text_of
from training_speed.start_up import StartUp

from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parse(argv)
    if args.plot:
        from figures import style

        style.require_matplotlib()
    who, peers = contenders(args, args.only)
    result: Result = {"machine": machine(), "peers": peers, "settings": vars(args)}
    if "warning" in result["machine"]:
        say(f"warning: {result['machine']['warning']}")
    with tempfile.TemporaryDirectory() as folder:
        result["cases"] = _cases(args, who, Path(folder))
        result["start_up"] = _start_up(args, Path(folder))
        result["curve"] = _curve(args, Path(folder))
    if args.plot:
        from training_speed.drawing import write

        write(series(result["curve"]), Path(args.plot))
    cli.print_result(text_of(result), result, args.json)


def _cases(args: Namespace, who: Sequence[Contender], folder: Path) -> list[Result]:
    """Times all contenders on each size."""
    found = []
    for size in args.sizes:
        say(f"{size}:")
        work = work_of(size, args.batch_size, args.length, args.vocab_size)
        found.append(_timed(args, work, who, folder))
    return found


def _start_up(args: Namespace, folder: Path) -> dict[str, list[float]]:
    """Times the real command's first update, the sizes in turn."""
    if not args.start_up:
        return {}
    tokens = args.batch_size * args.length
    start_up = StartUp(folder, tokens, min(2 * args.length, tokens))
    found: dict[str, list[float]] = {size: [] for size in args.start_up}
    for number in range(1, args.rounds + 1):
        for size, seconds in found.items():
            seconds.append(start_up.first_update(size))
            say(f"  round {number}: {size} {seconds[-1]:.1f} s to its first update")
    return found


def _curve(args: Namespace, folder: Path) -> list[Result]:
    """Times this package and its limit over lengths, at a fixed number of tokens."""
    who, _ = contenders(args, (OURS, PRODUCTS))
    found = []
    for size in args.sizes if args.lengths else ():
        for length in args.lengths:
            say(f"{size}, sentences of {length}:")
            batch_size = max(args.curve_tokens // length, 1)
            work = work_of(size, batch_size, length, args.vocab_size)
            found.append(_timed(args, work, who, folder))
    return found


def _timed(
    args: Namespace, work: Work, who: Sequence[Contender], folder: Path
) -> Result:
    """Times contenders on one work, in turn."""
    times = time_in_turn(
        work,
        who,
        rounds=args.rounds,
        steps=args.steps,
        one_by_one=args.one_by_one,
        folder=folder,
    )
    return summary(work, times)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times a training step beside the machine's limit and beside its peers."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--sizes", default="base", help="hyper-parameter sets, with commas between")
    add("--batch_size", type=count, default=32, help="sentence pairs of a step")
    add("--length", type=cli.at_least(2), default=32, help="tokens of a sentence")
    add("--vocab_size", type=cli.at_least(8), default=8000, help="subwords")
    add("--precision", default="float32,bfloat16", help="with commas between")
    add("--only", default=",".join(PROGRAMS), help="programs, with commas between")
    add("--rounds", type=count, default=5, help="turns of each contender")
    add("--steps", type=count, default=4, help="steps of a turn")
    add(
        "--one_by_one",
        action="store_true",
        help="start each process anew for every turn, where not all fit into memory",
    )
    for peer in PEERS:
        package = PROGRAMS[peer].package
        add(f"--{flag_of(peer)}", help=f"an interpreter that has {package}")
    add(
        "--start_up",
        default="",
        help="sets whose start-up is timed, as the command trains them on the "
        "built-in corpus, with commas between",
    )
    add("--lengths", default="", help="tokens of a sentence for the cost curve")
    add("--curve_tokens", type=count, default=2048, help="tokens of its steps")
    add("--plot", help="file that gets the cost curve's picture, e.g. curve.svg")
    args: Namespace = parser.parse_args(argv)
    sets = hparams.names()
    for flag, known in (
        ("precision", PRECISIONS),
        ("only", list(PROGRAMS)),
        ("sizes", sets),
        ("start_up", sets),
    ):
        chosen = _parts(getattr(args, flag))
        for part in chosen:
            if part not in known:
                parser.error(f"--{flag} {part}: must be of {', '.join(known)}")
        setattr(args, flag, chosen)
    args.lengths = _lengths(args.lengths)
    if args.plot and not args.lengths:
        parser.error("--plot draws the cost curve: say --lengths too")
    return args


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _lengths(text: str) -> list[int]:
    """Reads --lengths.

    Raises:
        UserError: not whole numbers of at least 2.
    """
    parts = _parts(text)
    if not all(part.isascii() and part.isdigit() and int(part) > 1 for part in parts):
        raise UserError(
            f"--lengths {text}: give whole numbers of at least 2, with commas between"
        )
    return [int(part) for part in parts]


if __name__ == "__main__":
    cli.run(main)
