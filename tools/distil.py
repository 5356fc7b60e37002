"""Trains a small, fast student model on the translations of a teacher model.

    python tools/distil.py --teacher TEACHER --data_dir DISTILLED --model_dir STUDENT
        [--hparams student]

Sequence-level knowledge distillation (Kim and Rush 2016, arXiv:1606.07947): the
teacher translates the source side of its training data with beam search, and the
student is trained on these translations with the teacher's vocabulary. Validation and
test data keep their references. The texts are written to `--data_dir`. After an
interruption, the same command resumes.
"""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import say
from flags import REQUIRED, parser

from t2t_repro.command_line import cli
from t2t_repro.problems.problem import SPLITS, Problem
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import new_text_file
from t2t_repro.system.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, writes the data, runs `translate` and `train`."""
    args = parser(
        __doc__,
        ("teacher", str, REQUIRED, "model directory of the teacher"),
        ("data_dir", cli.path, REQUIRED, "folder for the student's training data"),
        ("model_dir", cli.path, REQUIRED, "model directory of the student"),
        (
            "hparams",
            cli.path,
            "student",
            "the student's hyper-parameter set with overrides",
        ),
    ).parse_args(argv)
    cli.start_tensorflow(args.verbose)
    teacher, folder = ModelDir(Path(args.teacher)), Path(args.data_dir)
    problem, vocabulary = teacher.problem(), teacher.tokenizer().file_name
    if problem.data_dir and Path(problem.data_dir).resolve() == folder.resolve():
        raise UserError(
            f"--data_dir {folder} has the teacher's data; give another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"train.{problem.source_lang}"
    translated = folder / f"train.{problem.target_lang}"
    if translated.exists():
        say(f"reusing the translations in {translated}")
    else:
        write_text(problem, folder)
        files = ("--input_file", str(source), "--output_file", str(translated))
        _run("translate", "--model_dir", args.teacher, *files)
    _run("train", *student_flags(args, problem, teacher.path / vocabulary))


def write_text(problem: Problem, folder: Path) -> None:
    """Writes the source side of the training split and both sides of the others."""
    for split in SPLITS:
        langs = [problem.source_lang, problem.target_lang]
        for side, lang in enumerate(langs[:1] if split == "train" else langs):
            with new_text_file(folder / f"{split}.{lang}") as file:
                file.writelines(f"{pair[side]}\n" for pair in problem.pairs(split))


def student_flags(args: Namespace, problem: Problem, vocabulary: Path) -> list[str]:
    """Returns the flags of `train`, with the new data and the teacher's vocabulary."""
    return [
        *("--hparams", args.hparams, "--problem", "files"),
        *("--data_dir", args.data_dir, "--model_dir", args.model_dir),
        *("--source_lang", problem.source_lang, "--target_lang", problem.target_lang),
        *("--vocab_file", str(vocabulary)),
        *(["--json"] if args.json else []),
    ]


def _run(command: str, *flags: str) -> None:
    """Runs a command of the package; exits with its status if it fails."""
    process = subprocess.run([sys.executable, "-m", f"t2t_repro.{command}", *flags])
    if process.returncode:
        sys.exit(process.returncode)


if __name__ == "__main__":
    cli.run(main)
