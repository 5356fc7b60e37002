"""Measures a SavedModel: export time, size, load time, memory, and relative speed.

    python tools/benchmarks/benchmark_export.py --hparams base,vocab_divisor=37000 \
        --vocab_file vocab.model --source_file text.en
    python tools/benchmarks/benchmark_export.py --model_dir mymodel \
        --source_file text.en

The first command exports random weights, with embedding tables padded by
`vocab_divisor` to the size of a larger vocabulary. Random weights never produce EOS,
so all translations reach the length limit. One process has the model and a
`Translator`, the other only the export and TensorFlow. Both translate the same batches
in turn, because the speed of a machine drifts. The reported ratio is the median over
batches.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED

from benchmarks import report
from benchmarks.in_turn import PEERS, Contender, in_turn, own
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

HERE, THERE = "in process", "export"
MEBIBYTE = 2**20


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints the figures."""
    count = cli.at_least(1)
    args = report.parser(
        __doc__,
        ("model_dir", str, None, "model directory of a trained model"),
        ("hparams", str, None, "hyper-parameter set of random weights"),
        ("vocab_file", str, None, "vocabulary file of random weights"),
        ("source_file", str, REQUIRED, "file with one sentence per line"),
        ("lines", count, 128, "number of sentences to translate"),
        ("batch_size", count, 32, "sentences per batch"),
        ("rounds", count, 3, "turns per program"),
    ).parse_args(argv)
    if (args.model_dir is None) == (args.hparams is None):
        raise UserError("give either --model_dir or --hparams with --vocab_file")
    if args.hparams is not None and args.vocab_file is None:
        raise UserError("--hparams requires --vocab_file")
    lines, size = read_lines(args.source_file)[: args.lines], args.batch_size
    batches = [lines[n : n + size] for n in range(0, len(lines), size)]
    with tempfile.TemporaryDirectory() as folder, report.reported(args) as result:
        measure(args, batches, Path(folder), result["tables"])


def measure(
    args: Namespace, batches: Sequence[Sequence[str]], folder: Path, tables: Result
) -> None:
    """Exports a model to `folder` and times both processes on batches of texts.

    `tables` is updated after each batch, the speed after each round.
    """
    export_dir = folder / "exported"
    version = str(export_dir / "1")
    fields = vars(args) | {"export_dir": str(export_dir)}
    command = [sys.executable, str(PEERS / "run_export.py"), version]
    requests = [
        {"signature": "serving_default", "inputs": {"text": batch}} for batch in batches
    ]
    answers: dict[str, list[Result]] = {HERE: [], THERE: []}
    for name, _, answer in in_turn(
        # The first process writes the export before the second one starts.
        [own(HERE, "exporting.translator", fields), Contender(THERE, command, True)],
        [[request] for request in requests] * args.rounds,
        folder,
        begin=requests[:1],
    ):
        answers[name].append(answer)
        if name == THERE:
            files = (file for file in Path(version).rglob("*") if file.is_file())
            size = sum(file.stat().st_size for file in files) / MEBIBYTE
            tables["export"] = {THERE: {"MiB on disk": size} | export_figures(answers)}
            if not len(answers[THERE]) % len(batches):
                tables["speed"] = speed_figures(answers, len(batches))


def export_figures(answers: dict[str, list[Result]]) -> Result:
    """Returns times, the number of parameters, and memory beyond TensorFlow's own."""
    mine, other = answers[HERE][-1], answers[THERE][-1]
    return {
        "parameters": mine["parameters"],
        "s to export": mine["export_seconds"],
        "s to load": other["load_seconds"],
        "first batch (s)": other["first_request_seconds"],
        "MiB after first batch": other["memory_loaded"] / MEBIBYTE,
        report.MEMORY: other["memory"] / MEBIBYTE,
    }


def speed_figures(answers: dict[str, list[Result]], batches: int) -> Result:
    """Returns the speed of both processes in each round, and their ratios.

    Tokens are counted in the translations, including EOS. Other programs on the machine
    hardly affect the ratio of CPU times.
    """
    tokens = sum(answer["tokens"] for answer in answers[HERE][:batches])
    table: Result = {}
    for name, each in answers.items():
        seconds = [answer["seconds"] for answer in each]
        rounds = [sum(seconds[n : n + batches]) for n in range(0, len(each), batches)]
        table[name] = {
            "s": rounds,
            report.SPEED: [tokens / one for one in rounds],
            "CPU time (s)": sum(answer["processor_seconds"] for answer in each),
        }
    pairs = [*zip(*answers.values(), strict=True)]
    here, there = table[HERE], table[THERE]
    there["% of in-process speed"] = 100 * median(
        a["seconds"] / b["seconds"] for a, b in pairs
    )
    there["% of in-process speed by CPU time"] = (
        100 * here["CPU time (s)"] / there["CPU time (s)"]
    )
    texts = [[each["outputs"]["translations"] for each in pair] for pair in pairs]
    equal = sum(sum(map(str.__eq__, *pair)) for pair in texts[:batches])
    there["equal lines"] = f"{equal} of {sum(len(one) for one, _ in texts[:batches])}"
    return table


if __name__ == "__main__":
    cli.run(main)
