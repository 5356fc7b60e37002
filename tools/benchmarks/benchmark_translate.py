"""Measures start-up, speed and memory of `python -m t2t_repro.translate`.

    python tools/benchmarks/benchmark_translate.py --peers_python hf/bin/python

First, the command translates one line with random models of several sizes, in turn with
a process that only imports TensorFlow. Then the command and CTranslate2 translate files
of mixed lengths, from their start to their end, in float32 and int8; each translation
has `--length` subwords. Last, t2t_repro, CTranslate2 and Transformers
translate a batch of 32 sentences with the same random Marian model, once with the
vocabulary of OPUS-MT's models and once with 8,000 subwords; t2t_repro and CTranslate2
also in int8. The memory of t2t_repro is that beyond TensorFlow's import; the others
include all of theirs. Without `--peers_python`, this measurement does not run.
"""

import json
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import choice, several

from benchmarks import decoding, opus_mt, report, start_up
from benchmarks.file_translation import time_file
from benchmarks.in_turn import Contender, Process, own, peer, peer_versions
from benchmarks.report import Result, say
from t2t_repro import hparams
from t2t_repro.command_line import cli

TITLE = "one line through translate"
OURS = "t2t_repro"
INT8 = "int8"
PEERS = {
    "CTranslate2": ("ctranslate2", "float32"),
    f"CTranslate2 {INT8}": ("ctranslate2", INT8),
    "Transformers": ("transformers", "float32"),
}
SHAPES = {"8,000 subwords": 8000, "OPUS-MT": 58101}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    args = _parse(argv)
    versions = []
    if args.peers_python:
        packages = ("transformers", "torch", "ctranslate2")
        versions = [peer_versions(args.peers_python, "--peers_python", *packages)]
    with (
        tempfile.TemporaryDirectory() as name,
        report.report_at_end(args, versions) as result,
    ):
        cli.start_tensorflow(args.verbose)
        folder, tables = Path(name), result["tables"]
        commands = {
            size: start_up.write_line(size, args.vocab_size, folder / size)
            for size in args.sizes
        }
        start_up.time_one_line(commands, args.rounds, tables.setdefault(TITLE, {}))
        for size, lines in zip(args.sizes, args.lines, strict=False):
            table = tables.setdefault(f"{lines:,} lines, {size}", {})
            time_file(args, size, lines, folder / f"{size}_file", table)
        if args.peers_python:
            memory: Result = {}
            tables["memory of a batch (MiB)"] = memory
            for title, vocab_size in SHAPES.items():
                args.vocab_size, args.work_dir = vocab_size, str(folder / title)
                Path(args.work_dir).mkdir()
                _measure_memory(args, title, memory)


def _measure_memory(args: Namespace, title: str, table: Result) -> None:
    """Adds the peak memory in MiB of each program that translates a batch to a table.

    That of TensorFlow's import is subtracted from the memory of t2t_repro.
    """
    work_dir = Path(args.work_dir)
    work, settings = opus_mt.write_texts(args), vars(args)

    def ask(name: str, contender: Contender, request: Any) -> float:
        say(f"{name} ...")
        with Process(contender, work_dir) as process:
            return float(process.ask(request)["memory"]) / 2**20

    script = (args.peers_python, "opus_mt.py")
    ask("creating the model", peer("make", *script, "make", json.dumps(work)), None)
    opus_mt.import_marian(args)
    ask("calibrating int8", own("calibrate", "opus_mt.calibrate", settings), None)
    imported = ask("import", own("import", "start_up.only_import", {}), None)
    for name, precision in {OURS: "float32", f"{OURS} {INT8}": INT8}.items():
        fields = settings | {"xla": False, "precision": precision}
        ours = own(name, "opus_mt.t2t_repro", fields)
        memory = ask(name, ours, f"batch of {args.batch_size}")
        table.setdefault(name, {})[title] = memory - imported
    # Marian's ids are smaller by one: padding comes last, and EOS is 0.
    batch = (decoding.random_inputs(args)[0] - 1).tolist()
    for name, (task, precision) in PEERS.items():
        typed = json.dumps(work | {"compute_type": precision})
        memory = ask(name, peer(name, *script, task, typed), batch)
        table.setdefault(name, {})[title] = memory


def _parse(argv: Sequence[str] | None) -> Namespace:
    sets = "hyper-parameter sets, separated by commas"
    parser = report.parser(
        __doc__,
        ("sizes", several(choice(hparams.names())), "tiny,base", sets),
        (
            "lines",
            several(cli.int_range(100)),
            "2000,10000",
            "lines of each size's file, separated by commas; empty for no files",
        ),
        ("peers_python", str, None, "Python interpreter with the peers"),
    )
    args = decoding.check_flags(parser, argv, vocab_size=8000)
    args.batches = 1
    return args


if __name__ == "__main__":
    cli.run(main)
