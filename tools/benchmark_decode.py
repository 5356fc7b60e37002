"""Times beam search beside CTranslate2: same weights, same sentences, in turn.

    python tools/benchmark_decode.py [--rounds 3] [--only t2t_repro,...]

A model of random weights (base size, unless told otherwise) translates random
sentences; every translation takes exactly `--steps` steps, so that both do the same
work. Tokens of the best hypotheses per second, for three kinds of work: many batches
at hand, one batch at a time, one sentence at a time. Each program uses all cores as it
does best: t2t_repro runs batches side by side, a core each, and once more as
`translate --xla` does, with a compiled search for a sentence alone; of CTranslate2 the
better of batches side by side and one batch over all cores counts.

Beside them stand the matrix products of the steps alone, which nothing on the machine
can beat. The translations of t2t_repro in float32 are compared with those of a plain
search without caches. CTranslate2 must be installed (`pip install ctranslate2`), or
left out by `--only t2t_repro,products`.
"""

import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarking import Result, machine, machine_lines, run_process, say

from t2t_repro.command_line import cli

WORKER = Path(__file__).resolve().parent / "decode_worker.py"
OURS, PEER, LIMIT = "t2t_repro", "ctranslate2", "products"
CONTENDERS = {
    f"{OURS} float32": (OURS, "float32"),
    f"{OURS} float32, XLA": (OURS, "float32 xla"),
    f"{OURS} bfloat16": (OURS, "bfloat16"),
    "CTranslate2 float32": (PEER, "float32"),
    "CTranslate2 int8": (PEER, "int8"),
    "products float32": (LIMIT, "float32"),
    "products bfloat16": (LIMIT, "bfloat16"),
}
# What is compared with what.
PAIRS = (
    (f"{OURS} float32", "CTranslate2 float32"),
    (f"{OURS} float32, XLA", "CTranslate2 float32"),
    (f"{OURS} bfloat16", "CTranslate2 int8"),
    (f"{OURS} float32", "products float32"),
    (f"{OURS} bfloat16", "products bfloat16"),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the programs in turn and prints what they reached."""
    args = _parse(argv)
    result: Result = {"machine": machine(), "settings": vars(args)}
    if "warning" in result["machine"]:
        say(f"warning: {result['machine']['warning']}")
    with tempfile.TemporaryDirectory() as folder:
        work_dir = Path(folder)
        settings = work_dir / "settings.json"
        values = vars(args) | {"work_dir": folder}
        settings.write_text(json.dumps(values), encoding="utf-8")

        def run(name: str, task: str, option: str = "") -> Result:
            command = [sys.executable, str(WORKER), task, str(settings), option]
            return run_process(name, command, work_dir, os.environ)

        run("export", "export")
        chosen = {name: how for name, how in CONTENDERS.items() if how[0] in args.only}
        result["rounds"] = [
            {name: run(f"{name}, round {number}", *how) for name, how in chosen.items()}
            for number in range(1, args.rounds + 1)
        ]
        if OURS in args.only and args.checked:
            result["plain_search"] = run("plain search", "plain")
    cli.print_result(table(result), result, args.json)


def table(result: Result) -> str:
    """Writes the result for people: medians of the rounds, ratios of medians."""
    rounds = result["rounds"]
    works = list(next(iter(rounds[0].values()))["tokens_per_second"])
    wide = max(map(len, CONTENDERS))
    lines = [*machine_lines(result["machine"]), ""]
    for name in rounds[0]:
        memory = max(found[name]["peak_memory"] for found in rounds) / 2**20
        start = median(found[name]["start_seconds"] for found in rounds)
        lines.append(
            f"{name:{wide}}  {memory:6,.0f} MiB at most, {start:5.1f} s until the "
            "first batch is done"
        )
    for work in works:
        lines += ["", f"{work}, tokens/s (median; each round):"]
        medians = {}
        for name in rounds[0]:
            speeds = [found[name]["tokens_per_second"][work] for found in rounds]
            medians[name] = median(speeds)
            each = ", ".join(f"{speed:,.0f}" for speed in speeds)
            lines.append(f"  {name:{wide}}  {medians[name]:8,.0f}  ({each})")
        lines += [
            f"  {ours} / {theirs}: {medians[ours] / medians[theirs]:.2f}"
            for ours, theirs in PAIRS
            if ours in medians and theirs in medians
        ]
    if "plain_search" in result:
        found = result["plain_search"]
        lines += [
            "",
            f"{found['same']} of {found['checked']} translations in float32 are those "
            f"of a plain search without caches, with XLA {found['same_compiled']}",
        ]
    return "\n".join(lines)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times beam search beside CTranslate2 on the same weights and machine."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add(
        "--d_model", type=count, default=512, help="channels; heads of 64, d_ff 4 times"
    )
    add("--num_layers", type=count, default=6, help="layers of each stack")
    add("--vocab_size", type=count, default=8000, help="subwords")
    add("--length", type=count, default=32, help="subwords of a sentence, EOS included")
    add("--steps", type=count, default=52, help="subwords of a translation")
    add("--batch_size", type=count, default=32, help="sentences of a batch")
    add("--batches", type=count, default=4, help="batches at hand")
    add("--sentences", type=count, default=4, help="sentences translated alone")
    add("--beam_size", type=count, default=4, help="hypotheses per sentence")
    add(
        "--alpha",
        type=cli.between(0, cli.MOST_ALPHA),
        default=0.6,
        help="of the length penalty",
    )
    add("--rounds", type=count, default=3, help="how often all run, in turn")
    add("--checked", type=cli.at_least(0), default=4, help="translations to check")
    add("--seed", type=cli.at_least(0), default=1, help="of weights and sentences")
    add(
        "--only", default=f"{OURS},{PEER},{LIMIT}", help="programs, with commas between"
    )
    args: Namespace = parser.parse_args(argv)
    args.only = args.only.split(",")
    for name in args.only:
        if name not in (OURS, PEER, LIMIT):
            parser.error(f"--only {name}: must be of {OURS}, {PEER}, {LIMIT}")
    if args.steps < args.length:
        parser.error("--steps must be at least --length")
    if args.d_model % 64:
        parser.error("--d_model must be a multiple of 64")
    return args


if __name__ == "__main__":
    cli.run(main)
