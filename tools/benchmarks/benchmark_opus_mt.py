"""Times a random OPUS-MT model in t2t_repro, Transformers and CTranslate2.

    python tools/benchmarks/benchmark_opus_mt.py --peers_python hf/bin/python

Transformers writes a MarianMTModel of the size of `base`. t2t_repro imports this model,
and CTranslate2 converts it. The programs translate random sentences, in a batch and one
at a time, in exactly `--steps` steps, because EOS has probability 0. They take turns;
only one is alive and uses all cores. The result has the speed in tokens of the best
hypotheses, the memory, and the number of t2t_repro's translations that equal those of
Transformers. The environment of the other programs:

    pip install "transformers==5.*" "torch==2.*" sentencepiece sacremoses ctranslate2
"""

import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED

from benchmarks import decoding, opus_mt, report
from benchmarks.in_turn import Process, own, peer, peer_versions
from benchmarks.report import Result, say
from t2t_repro.command_line import cli

OURS, XLA, PEER = "t2t_repro", "t2t_repro, XLA", "Transformers"
PEERS = {PEER: "transformers", "CTranslate2": "ctranslate2"}
PAIRS = [(ours, theirs) for ours in (OURS, XLA) for theirs in PEERS]
TITLE, SAME = "an OPUS-MT model", f"equal to {PEER}"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    args = _parse(argv)
    packages = ("transformers", "torch", "ctranslate2")
    versions = peer_versions(args.peers_python, "--peers_python", *packages)
    with (
        tempfile.TemporaryDirectory() as folder,
        report.reported(args, [versions]) as result,
    ):
        args.work_dir = folder
        cli.start_tensorflow(args.verbose)
        work = opus_mt.write_texts(args)
        say("creating the model ...")
        make = peer("make", args.peers_python, "opus_mt.py", "make", json.dumps(work))
        with Process(make, Path(folder)) as process:
            process.ask(None)
        opus_mt.import_marian(args)
        measure(args, work, result["tables"])


def measure(args: Namespace, work: Result, tables: Result) -> None:
    """Times both workloads in all programs; `tables` gets the figures."""
    processes = [
        own(name, "opus_mt.t2t_repro", vars(args) | {"xla": name == XLA})
        for name in (OURS, XLA)
    ] + [
        peer(name, args.peers_python, "opus_mt.py", task, json.dumps(work))
        for name, task in PEERS.items()
    ]
    ids: dict[tuple[str, str], list[Any]] = {}
    for name, kind, answer in decoding.timed(args, processes, tables, TITLE, PAIRS):
        if name not in PEERS:
            # t2t_repro answers with a list of translations per call.
            ids[name, kind] = [row for call in answer["ids"] for row in call]
        elif name == PEER:
            theirs = [[number + 1 for number in row] for row in answer["ids"]]
            for mine in (OURS, XLA):
                pairs = zip(ids[mine, kind], theirs, strict=True)
                same = sum(row[: len(other)] == other for row, other in pairs)
                tables[TITLE][mine][f"{kind}, {SAME}"] = f"{same} of {len(theirs)}"


def _parse(argv: Sequence[str] | None) -> Namespace:
    python = ("peers_python", str, REQUIRED, "Python interpreter with the peers")
    parser = report.parser(__doc__, python)
    args = decoding.checked_flags(parser, argv, vocab_size=58101)
    if args.vocab_size < 1001:
        parser.error("--vocab_size must be at least 1001")
    args.batches = 1
    return args


if __name__ == "__main__":
    cli.run(main)
