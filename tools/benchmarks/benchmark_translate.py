"""Measures the start-up time and the memory of `python -m t2t_repro.translate`.

    python tools/benchmarks/benchmark_translate.py --peers_python hf/bin/python

First, the command translates one line with random models of several sizes, in turn with
a process that only imports TensorFlow. Then t2t_repro, CTranslate2 and Transformers
translate a batch of 32 sentences with the same random Marian model, once with the
vocabulary of OPUS-MT's models and once with 8,000 subwords. The memory of t2t_repro is
that beyond TensorFlow's import; the others include all of theirs. Without
`--peers_python`, only the first measurement runs.
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
from benchmarks.in_turn import Contender, Process, own, peer, peer_versions
from benchmarks.report import Result, say
from t2t_repro import hparams
from t2t_repro.command_line import cli

TITLE = "one line through translate"
OURS = "t2t_repro"
PEERS = {"CTranslate2": "ctranslate2", "Transformers": "transformers"}
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
            size: start_up.write_model_dir(size, args.vocab_size, folder / size)
            for size in args.sizes
        }
        start_up.time_one_line(commands, args.rounds, tables.setdefault(TITLE, {}))
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
    work = json.dumps(opus_mt.write_texts(args))

    def ask(name: str, contender: Contender, request: Any) -> float:
        say(f"{name} ...")
        with Process(contender, work_dir) as process:
            return float(process.ask(request)["memory"]) / 2**20

    script = (args.peers_python, "opus_mt.py")
    ask("creating the model", peer("make", *script, "make", work), None)
    opus_mt.import_marian(args)
    ours = own(OURS, "opus_mt.t2t_repro", vars(args) | {"xla": False})
    memory = ask(OURS, ours, f"batch of {args.batch_size}")
    memory -= ask("import", own("import", "start_up.only_import", {}), None)
    table.setdefault(OURS, {})[title] = memory
    # Marian's ids are smaller by one: padding comes last, and EOS is 0.
    batch = (decoding.random_inputs(args)[0] - 1).tolist()
    for name, task in PEERS.items():
        memory = ask(name, peer(name, *script, task, work), batch)
        table.setdefault(name, {})[title] = memory


def _parse(argv: Sequence[str] | None) -> Namespace:
    sets = "hyper-parameter sets that translate one line, separated by commas"
    parser = report.parser(
        __doc__,
        ("sizes", several(choice(hparams.names())), "tiny,base", sets),
        ("peers_python", str, None, "Python interpreter with the peers"),
    )
    args = decoding.check_flags(parser, argv, vocab_size=8000)
    args.batches = 1
    return args


if __name__ == "__main__":
    cli.run(main)
