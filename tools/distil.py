"""Trains a small, fast student on the translations of a teacher.

    python tools/distil.py --teacher TEACHER --data_dir DISTILLED --model_dir STUDENT
        [--hparams student]

Sequence-level knowledge distillation (Kim and Rush 2016, arXiv:1606.07947): the
teacher's beam search translates the source side of what it was trained on, and the
student learns these translations with the teacher's vocabulary. Validation and test
keep their references. `--data_dir` gets the text, which `translate` writes; the student
is trained by `train`. The same command goes on where it was interrupted.
"""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import say

from t2t_repro.command_line import cli
from t2t_repro.problems.problem import SPLITS, Problem
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import new_text_file
from t2t_repro.system.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, writes the text, lets the teacher translate and trains."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    teacher, folder = ModelDir(Path(args.teacher)), Path(args.data_dir)
    problem, vocabulary = teacher.problem(), teacher.tokenizer().file_name
    if problem.data_dir and Path(problem.data_dir).resolve() == folder.resolve():
        raise UserError(f"--data_dir {folder} holds the teacher's text; name another")
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"train.{problem.source_lang}"
    translated = folder / f"train.{problem.target_lang}"
    if translated.exists():
        say(f"{translated} is there; the teacher does not translate again")
    else:
        write_text(problem, folder)
        files = ("--input_file", str(source), "--output_file", str(translated))
        _run("translate", "--model_dir", args.teacher, *files)
    _run("train", *student_flags(args, problem, teacher.path / vocabulary))


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser("Trains a student on the translations of a teacher.")
    add = parser.add_argument
    add("--teacher", required=True, help="model directory of the teacher")
    add("--data_dir", required=True, help="folder for the text that is learned from")
    add("--model_dir", required=True, help="model directory of the student")
    add("--hparams", default="student", help="the student's set, with any overrides")
    return parser


def write_text(problem: Problem, folder: Path) -> None:
    """Writes the source side of the training pairs, and both sides of the others."""
    for split in SPLITS:
        sides = (problem.source_lang, problem.target_lang)[
            : 1 if split == "train" else 2
        ]
        for side, lang in enumerate(sides):
            with new_text_file(folder / f"{split}.{lang}") as file:
                file.writelines(f"{pair[side]}\n" for pair in problem.pairs(split))


def student_flags(args: Namespace, problem: Problem, vocabulary: Path) -> list[str]:
    """Returns the flags of `train`: the new text, with the teacher's vocabulary."""
    return [
        *("--hparams", args.hparams, "--problem", "files"),
        *("--data_dir", args.data_dir, "--model_dir", args.model_dir),
        *("--source_lang", problem.source_lang, "--target_lang", problem.target_lang),
        *("--vocab_file", str(vocabulary)),
        *(["--json"] if args.json else []),
    ]


def _run(command: str, *flags: str) -> None:
    """Runs a command, whose output is this program's; ends as it ends if it fails."""
    done = subprocess.run([sys.executable, "-m", f"t2t_repro.{command}", *flags])
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    cli.run(main)
