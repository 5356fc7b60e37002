"""Measures an export: time, size, load time, memory, and speed beside the model itself.

    python tools/benchmark_export.py --hparams base,vocab_divisor=37000 \
        --vocab_file vocab.model --source_file text.en
    python tools/benchmark_export.py --model_dir mymodel --source_file text.en

The first exports random weights (`vocab_divisor` gives the tables the rows of a larger
vocabulary); they never end a sentence, so every translation grows to its limit. One
process has the model and a `Translator`, the other only the export and TensorFlow. Both
translate the same batches in turn, because a machine's speed drifts. The ratio is the
median over the pairs of batches.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.in_turn import PEERS, Contender, in_turn, own, printed
from benchmarks.machine import Result

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

HERE, THERE = "in process", "export"
MEBIBYTE = 2**20


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parse(argv)
    lines = read_lines(args.source_file)[: args.lines]
    size = args.batch_size
    batches = [lines[n : n + size] for n in range(0, len(lines), size)]
    result: Result = {}
    with tempfile.TemporaryDirectory() as folder, printed(result, text_of, args.json):
        measure(args, batches, Path(folder), result)


def measure(
    args: Namespace, batches: Sequence[Sequence[str]], folder: Path, result: Result
) -> None:
    """Exports a model to `folder` and times both processes on batches of texts.

    `result` gets the figures of `figures_of` whenever a round is done.
    """
    export_dir = folder / "exported"
    version = str(export_dir / "1")
    told = vars(args) | {"export_dir": str(export_dir)}
    command = [sys.executable, str(PEERS / "run_export.py"), version]
    requests = [
        {"signature": "serving_default", "inputs": {"text": batch}} for batch in batches
    ]
    found: dict[str, list[Result]] = {HERE: [], THERE: []}
    for name, _, answer in in_turn(
        # The export is there when the first of them has answered once.
        [own(HERE, "exporting.translator", told), Contender(THERE, command, True)],
        [[request] for request in requests] * args.rounds,
        folder,
        begin=requests[:1],
    ):
        found[name].append(answer)
        rounds, rest = divmod(len(found[THERE]), len(batches))
        if name == THERE and not rest:
            result |= figures_of(found, rounds, batches)
            files = (file for file in Path(version).rglob("*") if file.is_file())
            result["size_mib"] = sum(f.stat().st_size for f in files) / MEBIBYTE


def figures_of(
    found: dict[str, list[Result]], rounds: int, batches: Sequence[Sequence[str]]
) -> Result:
    """Returns the figures by name, from both programs' answers to each round's batches.

    `tokens` are the subwords of all translations of a round, EOS included; speeds count
    each batch in its median time; `ratio` is the median over all batches of all rounds.
    `processor_ratio` is that of the processor's time, which other work on the machine
    hardly touches. Memory is beside what TensorFlow itself takes, after the first batch
    and at most.
    """
    here, there = (
        np.reshape([answer["seconds"] for answer in found[name]], (rounds, -1))
        for name in (HERE, THERE)
    )
    used = {
        name: sum(answer["processor_seconds"] for answer in answers)
        for name, answers in found.items()
    }
    tokens = sum(answer["tokens"] for answer in found[HERE][: len(batches)])
    pairs = zip(*(found[name][: len(batches)] for name in (HERE, THERE)), strict=True)
    mine, other = found[HERE][-1], found[THERE][-1]
    return {
        **{name: mine[name] for name in ("parameters", "export_seconds")},
        **{name: other[name] for name in ("load_seconds", "first_request_seconds")},
        "memory_loaded_mib": other["memory_loaded"] / MEBIBYTE,
        "memory_mib": other["memory"] / MEBIBYTE,
        "tokens": tokens,
        "tokens_per_second": tokens / np.median(there, axis=0).sum(),
        "in_process_tokens_per_second": tokens / np.median(here, axis=0).sum(),
        "ratio": float(np.median(here / there)),
        "processor_ratio": used[HERE] / used[THERE],
        "equal_lines": sum(_equal(one, two) for one, two in pairs),
        "lines": sum(map(len, batches)),
    }


def _equal(one: Result, other: Result) -> int:
    """Counts the translations of a batch that are the same."""
    texts = [answer["outputs"]["translations"] for answer in (one, other)]
    return sum(map(str.__eq__, *texts))


def text_of(found: Result) -> str:
    """Describes the figures for people."""
    if not found:
        return "no round was done"
    return (
        f"{found['parameters']:,} parameters: exported in "
        f"{found['export_seconds']:.1f} s, {found['size_mib']:,.0f} MiB; loaded in "
        f"{found['load_seconds']:.1f} s, first batch "
        f"{found['first_request_seconds']:.1f} s; memory beside TensorFlow's own "
        f"{found['memory_loaded_mib']:,.0f} MiB after it, {found['memory_mib']:,.0f} "
        f"at most\n{found['tokens_per_second']:,.0f} tokens/s, in process "
        f"{found['in_process_tokens_per_second']:,.0f}: {found['ratio']:.1%}, by the "
        f"processor's time {found['processor_ratio']:.1%} ({found['equal_lines']:,} of "
        f"{found['lines']:,} lines alike)"
    )


def _parse(argv: Sequence[str] | None) -> Any:
    parser = cli.ArgumentParser(
        "Exports a model, or random weights of a size, and measures the export."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--model_dir", help="folder of the model")
    add("--hparams", help="a set with overrides, for random weights")
    add("--vocab_file", help="the vocabulary for random weights")
    add("--source_file", required=True, help="sentences, one a line")
    add("--lines", type=count, default=128, help="to translate, the first")
    add("--batch_size", type=count, default=32, help="sentences at once")
    add("--rounds", type=count, default=3, help="the median counts")
    args = parser.parse_args(argv)
    if (args.model_dir is None) == (args.hparams is None):
        raise UserError("say either --model_dir or --hparams with --vocab_file")
    if args.hparams is not None and args.vocab_file is None:
        raise UserError("--hparams needs a vocabulary: say --vocab_file")
    return args


if __name__ == "__main__":
    cli.run(main)
