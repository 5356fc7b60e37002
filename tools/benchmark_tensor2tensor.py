"""Times t2t_repro beside the real tensor2tensor: same text, same machine, in turn.

    python tools/benchmark_tensor2tensor.py --t2t_python t2t-venv/bin/python
        --data_dir multi30k --vocab_file spm6k.model --model_dir models/multi30k

Two parts (`--only` takes one):

* Training. Both take the same batches in the same order, from t2t_repro's pipeline.
  Non-padding target tokens per second over the steps after the first
  `--measure_from`; no validation and no checkpoint in that time. t2t_repro makes its
  batches meanwhile, tensor2tensor is handed them ready.
* Translation. Both search the same sentences with the same weights, ids to ids,
  sorted longest first and cut into the same batches; the first batch runs once
  before the clock starts.

Every run is a process of its own, alone; `--rounds` alternates them. Both use
TensorFlow's own choice of threads, and no GPU. t2t_repro must be installed;
tensor2tensor's environment is Python 3.7 with tensorflow 1.15.5 and tensor2tensor
1.15.7.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarking import Result, machine, machine_lines, run_process, say

import t2t_repro
from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

TOOLS = Path(__file__).resolve().parent
WORKER = TOOLS / "benchmark_worker.py"
PEER = TOOLS / "peers" / "tensor2tensor_multi30k.py"
OURS, THEIRS = "t2t_repro", "tensor2tensor"

_PEER_VERSIONS = """
import json, platform, pkg_resources
print(json.dumps([pkg_resources.get_distribution("tensor2tensor").version,
                  platform.python_version()]))
"""

Round = dict[str, Result]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the parts and prints what they took."""
    args = _parse(argv)
    result: Result = {"machine": _machine(args.t2t_python)}
    if "warning" in result["machine"]:
        say(f"warning: {result['machine']['warning']}")
    with tempfile.TemporaryDirectory() as temporary:
        args.work_dir = args.work_dir or temporary
        pair = Pair(args)
        for part, measure in (("train", pair.train), ("translate", pair.translate)):
            if args.only in (None, part):
                result[part] = measure()
    cli.print_result(table(result), result, args.json)


class Pair:
    """Runs both programs in turn.

    Args:
        args: the flags.
    """

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._work_dir = Path(args.work_dir).resolve()
        self._work_dir.mkdir(parents=True, exist_ok=True)
        self._settings = self._work_dir / "settings.json"
        values = vars(args) | {"work_dir": str(self._work_dir)}
        self._settings.write_text(json.dumps(values), encoding="utf-8")

    def train(self) -> Result:
        """Times training; see the file's top."""
        args = self._args
        prepared = self._ours("prepare")
        flags = {
            "batches": self._work_dir / "batches.npz",
            "steps": args.steps,
            "measure_from": args.measure_from,
            **prepared["peer_flags"],
        }
        rounds = self._rounds("train", flags)
        for found in rounds:
            ours, theirs = found[OURS]["target_tokens"], found[THEIRS]["target_tokens"]
            if ours != theirs:
                raise RuntimeError(f"other batches: {ours} and {theirs} target tokens")
        shown = {name: getattr(args, name) for name in ("steps", "measure_from")}
        return summary(rounds) | shown | {"hparams": args.hparams}

    def translate(self) -> Result:
        """Times translation and compares what comes out."""
        args = self._args
        exported = self._ours("export")
        names = ("beam_size", "alpha", "extra_length", "batch_size")
        settings = {name: getattr(args, name) for name in names}
        flags = {
            "weights": self._work_dir / "weights.npz",
            "inputs": self._work_dir / "sentences.npz",
            "output": self._work_dir / f"{THEIRS}.npz",
            **settings,
            **exported["peer_flags"],
        }
        found = summary(self._rounds("translate", flags))
        with (
            np.load(self._work_dir / f"{OURS}.npz") as ours,
            np.load(self._work_dir / f"{THEIRS}.npz") as theirs,
        ):
            same = compare(dict(ours), dict(theirs))
        return found | settings | {"checkpoint": exported["checkpoint"], **same}

    def _rounds(self, task: str, flags: Result) -> list[Round]:
        found = []
        for number in range(1, self._args.rounds + 1):
            one: Round = {}
            for name in (OURS, THEIRS):
                ours = name == OURS
                one[name] = self._ours(task) if ours else self._theirs(task, flags)
                speed = f"{one[name]['tokens_per_second']:,.0f} tokens/s"
                say(f"{task}, round {number}: {name} {speed}")
            found.append(one)
        return found

    def _ours(self, task: str) -> Result:
        """Runs a task of `benchmark_worker.py`."""
        command = [sys.executable, str(WORKER), task, str(self._settings)]
        return self._run(f"{OURS} {task}", command, os.environ)

    def _theirs(self, task: str, flags: Result) -> Result:
        """Runs a subcommand of `peers/tensor2tensor_multi30k.py`."""
        command = [self._args.t2t_python, str(PEER), task, "--json"]
        for name, value in flags.items():
            command += [f"--{name}", str(value)]
        # Our modules are not for its Python.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return self._run(f"{THEIRS} {task}", command, environment)

    def _run(self, name: str, command: list[str], environment: Any) -> Result:
        """Runs one process and returns its result, with its whole time."""
        return run_process(name, command, self._work_dir, environment)


def summary(rounds: list[Round]) -> Result:
    """Adds up the rounds.

    Returns:
        The `rounds`, and the `ratio` of tensor2tensor's seconds to t2t_repro's.
    """
    seconds = {
        name: sum(found[name]["seconds"] for found in rounds) for name in (OURS, THEIRS)
    }
    return {"ratio": seconds[THEIRS] / seconds[OURS], "rounds": rounds}


def compare(
    ours: dict[str, npt.NDArray[Any]], theirs: dict[str, npt.NDArray[Any]]
) -> Result:
    """Compares the translations of the same sentences.

    Args:
        ours: `ids` int32 (sentences, length), 0-padded, and `scores` float32
            (sentences,).
        theirs: the same; the length may differ.

    Returns:
        The number of `sentences`, how many are `identical` in all ids, and the
        largest difference of scores among these and among all (None: there are
        none).
    """
    width = max(ours["ids"].shape[1], theirs["ids"].shape[1])
    wide = [
        np.pad(found["ids"], [(0, 0), (0, width - found["ids"].shape[1])])
        for found in (ours, theirs)
    ]
    identical = (wide[0] == wide[1]).all(axis=1)
    differences = np.abs(ours["scores"] - theirs["scores"])
    among = differences[identical]
    return {
        "sentences": len(identical),
        "identical": int(identical.sum()),
        "largest_score_difference": float(among.max()) if len(among) else None,
        "largest_score_difference_of_all": float(differences.max()),
    }


def table(result: Result) -> str:
    """Writes the result for people."""
    found = result["machine"]
    lines = machine_lines(found)
    any_part = result["train"] if "train" in result else result["translate"]
    lines += [
        f"{name} {found[name]} on Python {found['python'][name]} and TensorFlow "
        f"{any_part['rounds'][0][name]['tensorflow']}"
        for name in (OURS, THEIRS)
    ]
    if "train" in result:
        lines += ["", *_train_lines(result["train"])]
    if "translate" in result:
        lines += ["", *_translate_lines(result["translate"])]
    return "\n".join(lines)


def _train_lines(train: Result) -> list[str]:
    last = train["rounds"][-1]
    loss = {name: last[name]["losses"][-1][1] for name in (OURS, THEIRS)}
    return [
        f"Training {train['hparams']}, steps {train['measure_from'] + 1} to "
        f"{train['steps']} of the same batches, non-padding target tokens:",
        *_round_lines(train),
        "  outside the clock: imports, graph and the steps before",
        f"  mean loss of the last steps: {OURS} {loss[OURS]:.4f}, "
        f"{THEIRS} {loss[THEIRS]:.4f} (other random draws)",
    ]


def _translate_lines(translate: Result) -> list[str]:
    difference = translate["largest_score_difference"]
    among = "" if difference is None else f"{difference:.1e} among these, "
    extra = translate["extra_length"]
    return [
        f"Translating {translate['sentences']:,} sentences by {translate['checkpoint']}"
        f", longest first, batch {translate['batch_size']}, beam "
        f"{translate['beam_size']}, alpha {translate['alpha']}:",
        *_round_lines(translate),
        "  outside the clock: imports, graph, weights and the first batch once",
        f"  limit of a translation: {OURS} its own input + {extra}, {THEIRS} the "
        f"batch's padded input + {extra}",
        f"  identical: {translate['identical']:,} of {translate['sentences']:,}; "
        f"largest difference of scores: {among}"
        f"{translate['largest_score_difference_of_all']:.1e} among all",
    ]


def _round_lines(part: Result) -> list[str]:
    """Writes the rounds as a table, and the ratio of all."""
    lines = [
        "  round  program          seconds  tokens/s  outside the clock, s",
    ]
    for number, found in enumerate(part["rounds"], 1):
        for name in (OURS, THEIRS):
            one = found[name]
            lines.append(
                f"  {number:5}  {name:13}  {one['seconds']:9.2f}  "
                f"{one['tokens_per_second']:8,.0f}  "
                f"{one['wall_seconds'] - one['seconds']:20.1f}"
            )
    lines.append(f"  {OURS} is {part['ratio']:.2f} times as fast, all rounds together")
    return lines


def _machine(t2t_python: str) -> Result:
    """Describes the machine and the versions."""
    version, python = _peer_versions(t2t_python)
    return machine() | {
        OURS: t2t_repro.__version__,
        THEIRS: version,
        "python": {OURS: platform.python_version(), THEIRS: python},
    }


def _peer_versions(t2t_python: str) -> list[str]:
    """Returns the versions of tensor2tensor and of its Python.

    Raises:
        UserError: the interpreter has no tensor2tensor.
    """
    try:
        done = subprocess.run(
            [t2t_python, "-W", "ignore", "-c", _PEER_VERSIONS],
            capture_output=True,
            text=True,
            check=True,
        )
    except OSError as error:
        raise UserError(f"--t2t_python {t2t_python}: {error.strerror}") from None
    except subprocess.CalledProcessError:
        raise UserError(
            f"--t2t_python {t2t_python} has no tensor2tensor; install "
            "tensor2tensor==1.15.7 and tensorflow==1.15.5 under Python 3.7"
        ) from None
    versions: list[str] = json.loads(done.stdout)
    return versions


def _parse(argv: Sequence[str] | None) -> Namespace:
    parser = cli.ArgumentParser(
        "Times t2t_repro beside the real tensor2tensor on the same text and machine."
    )
    add = parser.add_argument
    add("--t2t_python", required=True, help="Python 3.7 that has tensor2tensor 1.15.7")
    add("--data_dir", required=True, help="folder of the texts (Multi30k)")
    add("--source_lang", default="en", help="ending of the source files")
    add("--target_lang", default="de", help="ending of the target files")
    add("--test_file", default="test_2016_flickr.en", help="to translate, in data_dir")
    add("--only", choices=("train", "translate"), help="one of the two parts")
    add("--rounds", type=int, default=1, help="how often both run, in turn")
    add("--work_dir", help="keep what the programs read and write here")
    add("--hparams", default="multi30k", help="training: the set, with any overrides")
    add("--vocab_file", help="training: the vocabulary")
    add("--steps", type=int, default=600, help="training: updates in all")
    add("--measure_from", type=int, default=100, help="training: updates not timed")
    add("--model_dir", help="translation: a trained model")
    add("--checkpoint", default="best", help="translation: see t2t_repro.translate")
    add("--batch_size", type=int, default=32, help="translation: sentences at once")
    add("--beam_size", type=int, default=4, help="translation: hypotheses")
    add("--alpha", type=float, default=0.6, help="translation: of the length penalty")
    add("--extra_length", type=int, default=50, help="translation: limit over input")
    args: Namespace = parser.parse_args(argv)
    for part, flag in (("train", "vocab_file"), ("translate", "model_dir")):
        if args.only in (None, part) and getattr(args, flag) is None:
            parser.error(f"--{flag} is needed to {part}")
    if not 0 <= args.measure_from < args.steps:
        parser.error("--measure_from must be from 0 to --steps - 1")
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


if __name__ == "__main__":
    cli.run(main)
