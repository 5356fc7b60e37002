"""Trains rows of the paper's table 3 and writes the table.

    python tools/ablate.py --work_dir D [--rows base,table3_a_h1,...] [--seeds 1,2]
        [--hparams base,d_model=128,...] [--problem files --data_dir TEXT ...]

Each row is trained with each seed in a separate folder. As in the paper, it is scored
on the validation split with the last checkpoint, without averaging; the perplexity is
per subword and without label smoothing. Sizes keep their ratio to the paper's base.
The results are written to `table3.md` and `table3.json`, together with the paper's
figures. After an interruption, the same command resumes.
"""

import json
import math
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablation.rows import BASE, ROWS, changes
from ablation.table import format_markdown, summary
from benchmarks.in_turn import failure
from benchmarks.report import machine, say
from flags import choice, parser, several
from model_costs import parameters

from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.hparams import HParams
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

TABLE = "table3"
DATA_FLAGS = ("data_dir", "source_lang", "target_lang", "vocab_file")


@dataclass(frozen=True)
class Trial:
    """A row of `ROWS` with one seed.

    Attributes:
        row: Name of the row.
        hparams: Hyper-parameters of the row, with the seed.
        folder: Folder of the model, logs and result.
    """

    row: str
    hparams: HParams
    folder: Path

    @property
    def result_file(self) -> Path:
        """Path of the file with the trial's result."""
        return self.folder / "trial.json"

    def result(self) -> dict[str, Any] | None:
        """Returns the stored result if it has the same hyper-parameters, or None."""
        try:
            result = json.loads(self.result_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        expected = self.hparams.to_dict()
        is_same = isinstance(result, dict) and result.get("hparams") == expected
        return result if is_same else None


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs trials without a result and prints the table."""
    args = parser(
        __doc__,
        ("rows", several(choice(("all", *ROWS))), "all", "rows, separated by commas"),
        ("hparams", cli.path, BASE, "base hyper-parameter set with overrides"),
        ("seeds", several(cli.int_range(0)), "1", "random seeds, separated by commas"),
        ("work_dir", cli.path, None, "folder for the models and the table"),
        ("jobs", cli.int_range(1), 1, "number of concurrent trials"),
        ("problem", str, None, "problem to train on (default: that of the base set)"),
        *((name, str, None, "see t2t_repro.train") for name in DATA_FLAGS),
        ("count", bool, False, "print only the parameters of each row"),
    ).parse_args(argv)
    base = hparams.load(args.hparams)
    rows = list(ROWS) if args.rows == ["all"] else args.rows
    if args.count:
        sets = {row: base.replace(**changes(row, base)) for row in rows}
        counts = {row: parameters(each, each.vocab_size) for row, each in sets.items()}
        text = "\n".join(f"{count:>12,}  {row}" for row, count in counts.items())
        counted = [{"row": row, "parameters": counts[row]} for row in rows]
        cli.print_result(text, {"rows": counted}, args.json)
        return
    if args.work_dir is None:
        raise UserError("--work_dir is required, a folder for models and the table")
    # Counting the parameters of checkpoints needs TensorFlow.
    cli.start_tensorflow(args.verbose)
    work_dir = Path(args.work_dir)
    trials = list(make_trials(rows, base, args.seeds, work_dir))
    work_dir.mkdir(parents=True, exist_ok=True)
    description = machine()
    with ThreadPoolExecutor(args.jobs) as pool:
        for future in [pool.submit(run, trial, args) for trial in trials]:
            future.result()
            # Writes a table of the finished trials after each trial.
            summaries = _summaries(trials)
            result: dict[str, Any] = {"machine": description, "rows": summaries}
            text = format_markdown(summaries)
            write_text_atomically(work_dir / f"{TABLE}.md", text)
            _write_json(work_dir / f"{TABLE}.json", result)
    cli.print_result(text, result, args.json)


def make_trials(
    rows: Sequence[str], base: HParams, seeds: Sequence[int], work_dir: Path
) -> Iterator[Trial]:
    """Yields the trials of all rows and seeds, ordered by seed.

    Raises UserError if a size of a row is not an integer.
    """
    for seed in seeds:
        for row in rows:
            resolved = base.replace(**changes(row, base), seed=seed)
            yield Trial(row, resolved, work_dir / f"{row}.seed{seed}")


def run(trial: Trial, args: Namespace) -> None:
    """Trains and scores a trial, or reuses its result.

    Raises UserError with the last line of the log if a command fails.
    """
    if trial.result() is not None:
        say(f"reusing {trial.result_file}")
        return
    trial.folder.mkdir(exist_ok=True)
    set_file = trial.folder / "set.yaml"
    trial.hparams.save(set_file)
    train = ["--hparams", str(set_file)]
    for flag in ("problem", *DATA_FLAGS):
        if getattr(args, flag) is not None:
            train += [f"--{flag}", getattr(args, flag)]
    trained = _command(trial, args, "train", *train)
    evaluate = ("--split", "val", "--checkpoint", "latest")
    scored = _command(trial, args, "evaluate", *evaluate)
    result = {"row": trial.row, "seed": trial.hparams.seed, "steps": trained["steps"]}
    result |= {name: scored[name] for name in ("bleu", "signature", "sentences")}
    model_dir, last = trial.folder / "model", trial.hparams.train_steps
    result["perplexity"] = perplexity(model_dir, last)
    result["parameters"] = _parameters(model_dir)
    _write_json(trial.result_file, result | {"hparams": trial.hparams.to_dict()})


def _write_json(path: Path, values: dict[str, Any]) -> None:
    write_text_atomically(path, json.dumps(values, indent=1) + "\n")


def _command(trial: Trial, args: Namespace, name: str, *flags: str) -> dict[str, Any]:
    """Runs `python -m t2t_repro.NAME` on a trial's model and returns its result."""
    log = trial.folder / f"{name}.log"
    say(f"{trial.folder.name} {name} ... (log: {log})")
    command = [sys.executable, "-m", f"t2t_repro.{name}", *flags, "--json"]
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.run(
            [*command, "--model_dir", str(trial.folder / "model")],
            env=os.environ | _threads(args.jobs) | {"CUDA_VISIBLE_DEVICES": "-1"},
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    if process.returncode:
        raise failure(f"{trial.folder.name} {name}", log, process.returncode)
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def perplexity(model_dir: Path, step: int) -> float:
    """Returns the validation perplexity per subword at a step, without smoothing."""
    from t2t_repro.training.monitor import VALIDATION_FILE

    rows = (model_dir / VALIDATION_FILE).read_text(encoding="utf-8").splitlines()[1:]
    losses = {int(row.split("\t")[0]): float(row.split("\t")[1]) for row in rows}
    return math.exp(losses[step])


def _parameters(model_dir: Path) -> int:
    from t2t_repro.runs.model_dir import ModelDir

    tensors = ModelDir(model_dir).checkpoint("latest").tensors()
    return sum(math.prod(shape) for shape in tensors.shapes().values())


def _summaries(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Returns the summaries of all rows with at least one result."""
    results = [result for trial in trials if (result := trial.result()) is not None]
    return [
        summary(row, [each for each in results if each["row"] == row])
        for row in dict.fromkeys(each["row"] for each in results)
    ]


def _threads(jobs: int) -> dict[str, str]:
    """Returns environment variables that split the cores among concurrent trials."""
    if jobs == 1:
        return {}
    each = max(1, len(os.sched_getaffinity(0)) // jobs)
    return {"TF_NUM_INTRAOP_THREADS": str(each), "OMP_NUM_THREADS": str(each)}


if __name__ == "__main__":
    cli.run(main)
