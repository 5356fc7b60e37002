"""Measures a SavedModel: export time, size, load time, memory, and relative speed.

    python tools/benchmarks/benchmark_export.py --hparams base,vocab_divisor=37000 \
        --vocab_file vocab.model --source_file text.en

The command exports random weights, with embedding tables padded by `vocab_divisor` to
the size of a larger vocabulary. Random weights never produce EOS, so all translations
reach the length limit. One process has the model and a `Translator`, the other only the
export and TensorFlow. Both translate the same batches in turn, because the speed of a
machine drifts. The reported ratio is that of the median speeds.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED

from benchmarks import report
from benchmarks.in_turn import PEERS, Contender, in_turn, own
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines

HERE, THERE = "in process", "export"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    count = cli.int_range(1)
    args = report.parser(
        __doc__,
        ("hparams", cli.path, REQUIRED, "hyper-parameter set of random weights"),
        ("vocab_file", cli.path, REQUIRED, "vocabulary file"),
        ("source_file", cli.path, REQUIRED, "file with one sentence per line"),
        ("lines", count, 128, "number of sentences to translate"),
        ("batch_size", count, 32, "sentences per batch"),
        ("rounds", count, 3, "turns per program"),
    ).parse_args(argv)
    lines, size = read_lines(args.source_file)[: args.lines], args.batch_size
    batches = [lines[n : n + size] for n in range(0, len(lines), size)]
    with tempfile.TemporaryDirectory() as folder, report.report_at_end(args) as result:
        measure(args, batches, Path(folder), result["tables"])


def measure(
    args: Namespace, batches: Sequence[Sequence[str]], folder: Path, tables: Result
) -> None:
    """Exports a model to `folder` and times both processes on batches of texts.

    `tables` is updated after each batch. Tokens are counted in the translations of the
    model, including EOS.
    """
    version = folder / "exported" / "1"
    fields = vars(args) | {"export_dir": str(version.parent)}
    command = [sys.executable, str(PEERS / "run_export.py"), str(version)]
    requests = [
        {"signature": "serving_default", "inputs": {"text": batch}} for batch in batches
    ]
    speed = tables.setdefault("speed of each batch", {})
    texts: dict[str, list[str]] = {HERE: [], THERE: []}
    for name, _, answer in in_turn(
        # The first process writes the export before the second one starts.
        [own(HERE, "exporting.translator", fields), Contender(THERE, command, True)],
        [[request] for request in requests] * args.rounds,
        folder,
        begin=requests[:1],
    ):
        texts[name] += answer["outputs"]["translations"]
        if name == HERE:
            here = answer
        report.add_turn(speed, name, answer, tokens=here["tokens"])
        if name == THERE:
            tables["export"] = {THERE: export_figures(here, answer, version)}
            tables["speed: ratios"] = report.ratios(speed, [(THERE, HERE)])
            equal = sum(map(str.__eq__, *texts.values()))
            speed[THERE]["equal lines"] = f"{equal} of {len(texts[THERE])}"


def export_figures(here: Result, there: Result, version: Path) -> Result:
    """Returns sizes and times, and memory beyond TensorFlow's own.

    Args:
        here: Answer of the process that exported the model.
        there: Answer of the process that loaded the export.
        version: Folder of the export.
    """
    sizes = (file.stat().st_size for file in version.rglob("*") if file.is_file())
    return {
        "MiB on disk": sum(sizes) / 2**20,
        "parameters": here["parameters"],
        "s to export": here["export_seconds"],
        "s to load": there["load_seconds"],
        "first batch (s)": there["first_request_seconds"],
        "MiB after first batch": there["memory_loaded"] / 2**20,
        report.MEMORY: there["memory"] / 2**20,
    }


if __name__ == "__main__":
    cli.run(main)
