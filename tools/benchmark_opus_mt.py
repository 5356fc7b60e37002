"""Times an OPUS-MT model of random weights here, in Transformers and in CTranslate2.

    python tools/benchmark_opus_mt.py --peers_python hf/bin/python [--rounds 3]

Transformers writes a MarianMTModel of base shape; it is imported here and converted by
CTranslate2's own converter, so that all read the same file. Random sentences are
translated in exactly `--steps` steps, for the end has no probability: a batch, and a
sentence alone. The programs take turns, all cores each, and only one is alive. It
prints tokens of the best hypotheses a second, and a second of processor time, which
others on the machine hardly change where `taskset -c 0` leaves one core; memory; and
how many translations here are those of Transformers (whose positions it is imported
with). The peers' environment:

    pip install "transformers==5.*" "torch==2.*" sentencepiece sacremoses ctranslate2
"""

import json
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import decoding, opus_mt
from benchmarks.in_turn import Process, in_turn, own, peer, peer_versions, printed
from benchmarks.machine import Result, machine, machine_lines, say

from t2t_repro.command_line import cli

OURS, XLA, PEER = "t2t_repro", "t2t_repro, XLA", "Transformers"
PEERS = {PEER: "transformers", "CTranslate2": "ctranslate2"}
SPEEDS = {
    "tokens_per_second": "seconds",
    "tokens_per_processor_second": "processor_seconds",
}
PACKAGES = ("transformers", "torch", "ctranslate2")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the programs in turn and prints what they reached."""
    args = _parse(argv)
    versions = peer_versions(args.peers_python, "--peers_python", *PACKAGES)
    result: Result = {"machine": machine(), "settings": vars(args)}
    result |= {"peers": versions, "programs": {}}
    with tempfile.TemporaryDirectory() as folder, printed(result, table, args.json):
        args.work_dir = folder
        cli.start_tensorflow(args.verbose)
        work = opus_mt.write_texts(args)
        say("making the model ...")
        make = peer("make", args.peers_python, "opus_mt.py", "make", json.dumps(work))
        with Process(make, Path(folder)) as process:
            process.ask(None)
        opus_mt.import_it(args)
        measure(args, work, result["programs"])


def measure(args: Namespace, work: Result, found: Result) -> None:
    """Times both kinds of work of all programs.

    `found` gets each program's tokens a second by work, its memory, and of our own how
    many translations are Transformers'.
    """
    works = decoding.works_of(args)
    timed = [f"a batch of {args.batch_size} alone", decoding.SENTENCE]
    contenders = [
        own(name, "opus_mt.t2t_repro", vars(args) | {"xla": name == XLA})
        for name in (OURS, XLA)
    ] + [
        peer(name, args.peers_python, "opus_mt.py", task, json.dumps(work))
        for name, task in PEERS.items()
    ]
    ids: dict[tuple[str, str], list[Any]] = {}  # Of ours by call, of peers flat.
    for name, kind, answer in in_turn(
        contenders,
        [timed] * args.rounds,
        Path(args.work_dir),
        begin=decoding.BEGIN,
        one_by_one=True,
    ):
        one = found.setdefault(name, {"peak_memory": 0} | {each: {} for each in SPEEDS})
        one["peak_memory"] = max(one["peak_memory"], answer["memory"])
        tokens = works[kind][..., 0].size * args.steps
        for speed, seconds in SPEEDS.items():
            one[speed].setdefault(kind, []).append(tokens / answer[seconds])
        speeds = one["tokens_per_second"][kind]
        say(f"  round {len(speeds)}: {name}, {kind}: {speeds[-1]:,.1f} tokens/s")
        ids[name, kind] = answer["ids"]
        if name == PEER:
            theirs = [[number + 1 for number in row] for row in answer["ids"]]
            for mine in (OURS, XLA):
                flat = [row for call in ids[mine, kind] for row in call]
                pairs = zip(flat, theirs, strict=True)
                same = sum(row[: len(other)] == other for row, other in pairs)
                found[mine].setdefault("same", {})[kind] = [same, len(theirs)]


def table(result: Result) -> str:
    """Writes the result for people: medians of the rounds, and of their ratios."""
    found = result["programs"]
    lines = [*machine_lines(result["machine"]), result["peers"], ""]
    kinds: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name, one in found.items():
        lines.append(f"{name:14}  {one['peak_memory'] / 2**20:6,.0f} MiB at most")
        for speed in SPEEDS:
            for kind, each in one[speed].items():
                kinds.setdefault((kind, speed), {})[name] = each
    for (kind, speed), by_name in kinds.items():
        lines += ["", f"{kind}, {speed.replace('_', ' ')} (median; each round):"]
        for name, each in by_name.items():
            told = ", ".join(f"{tokens:,.1f}" for tokens in each)
            lines.append(f"  {name:14}  {median(each):8,.1f}  ({told})")
        for ours in (OURS, XLA):
            for theirs in [each for each in PEERS if {ours, each} <= by_name.keys()]:
                pairs = zip(by_name[ours], by_name[theirs], strict=False)
                ratio = median(mine / other for mine, other in pairs)
                lines.append(f"  {ours} / {theirs}: {ratio:.2f}")
            same = found.get(ours, {}).get("same", {})
            if speed == "tokens_per_second" and kind in same:
                told = " of ".join(map(str, same[kind]))
                lines.append(f"  {ours}: {told} translations are those of {PEER}")
    return "\n".join(lines)


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times an OPUS-MT model of random weights beside Transformers and CTranslate2."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--peers_python", required=True, help="Python that has both peers")
    for name, default, text in (
        ("d_model", 512, "channels; heads of 64, d_ff 4 times"),
        ("num_layers", 6, "layers of each stack"),
        ("vocab_size", 58101, "pieces, padding included"),
        ("length", 32, "pieces of a sentence, the end included"),
        ("steps", 52, "pieces of a translation"),
        ("batch_size", 32, "sentences of a batch"),
        ("sentences", 4, "sentences translated alone"),
        ("beam_size", 4, "hypotheses per sentence"),
        ("rounds", 3, "how often all run, in turn"),
    ):
        add(f"--{name}", type=count, default=default, help=text)
    add("--seed", type=cli.at_least(0), default=1, help="of weights and sentences")
    args: Namespace = parser.parse_args(argv)
    if args.d_model % 64:
        parser.error("--d_model must be a multiple of 64")
    if args.vocab_size < 1001:
        parser.error("--vocab_size must be at least 1001")
    args.batches = 1
    return args


if __name__ == "__main__":
    cli.run(main)
