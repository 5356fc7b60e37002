"""A user's own problem and hyper-parameter set, outside of the package."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import run_command, tiny

pytestmark = pytest.mark.medium

MODULE = """\
from pathlib import Path

from t2t_repro.problems import Problem


class Numbers(Problem):
    source_lang, target_lang = "en", "de"

    def pairs(self, split):
        for line in (Path(self.data_dir) / f"{split}.tsv").read_text().splitlines():
            source, target = line.split("\\t")
            yield source, target
"""
# The warm-up is longer, so that the model is not scored after training.
TRAIN = ("--hparams", "sets/mine.yaml,dropout=0.2,warmup_steps=9")
TRAIN += ("--data_dir", "tables")


@dataclass(frozen=True)
class Place:
    """A user's folder: module of the problem, hyper-parameter set and data.

    Attributes:
        path: The folder, which is the working directory of the commands.
        training: Result of the command `train`.
    """

    path: Path
    training: run_command.Done


@pytest.fixture
def run(place, monkeypatch):
    """Returns a function that runs a command in the user's folder, in this process.

    Like `python -m`, it imports modules from the folder.
    """
    monkeypatch.chdir(place.path)
    monkeypatch.syspath_prepend(place.path)
    yield run_command.run
    sys.modules.pop("my_corpus", None)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Returns a user's folder in which a model was trained for two steps."""
    path = tmp_path_factory.mktemp("user")
    for name in ("sets", "tables"):
        (path / name).mkdir()
    (path / "my_corpus.py").write_text(MODULE)
    for split in tiny.SIZES:
        lines = [f"{source}\t{target}\n" for source, target in tiny.pairs(split)]
        (path / "tables" / f"{split}.tsv").write_text("".join(lines))
    text = tiny.HPARAMS.replace("problem: files", "problem: my_corpus:Numbers")
    (path / "sets" / "mine.yaml").write_text(text)
    flags = (*TRAIN, "--train_steps", "2", "--json")
    completed = run_command.run_alone("train", *flags, cwd=path)
    assert completed.status == 0, completed.err
    return Place(path, completed)


MODEL = "models/mine.my_corpus.Numbers"


def test_training_resumes_and_evaluate_needs_only_the_directory(place, run):
    result = json.loads(place.training.out)
    assert (result["problem"], result["steps"]) == ("my_corpus:Numbers", 2)
    again = run("train", *TRAIN)
    assert again.status == 0, again.err
    assert f"resuming from step 2 in {MODEL}" in again.out
    resolved = (place.path / MODEL / "hparams.yaml").read_text()
    assert "\ndropout: 0.2\n" in resolved
    assert "\nproblem: my_corpus:Numbers\n" in resolved
    scored = run("evaluate", "--model_dir", MODEL, "--json")
    assert scored.status == 0, scored.err
    assert json.loads(scored.out)["sentences"] == tiny.SIZES["test"]


def test_the_problem_flag_has_priority_over_the_set(run):
    flags = ("--hparams", "tiny", "--problem", "my_corpus:Numbers")
    completed = run("datagen", *flags, "--data_dir", "tables", "--json")
    assert completed.status == 0, completed.err
    values = json.loads(completed.out)
    assert Path(values["directory"]).parts[:2] == ("tables", "encoded")
    origin = values["splits"]["train"]["origin"]
    assert origin["description"] == "my_corpus:Numbers, train"


def test_translation_does_not_need_the_module(place):
    model = str(place.path / MODEL)
    completed = run_command.run("translate", "--model_dir", model, stdin=b"one\n")
    assert completed.status == 0, completed.err


def test_code_in_a_model_directory_is_not_run(place, tmp_path):
    """Without the module of the problem, the command prints a one-line error."""
    code = place.path / MODEL / "my_corpus.py"
    code.write_text("import os\nos.mkdir('was_run')\n")
    try:
        model = str(place.path / MODEL)
        completed = run_command.run_alone(
            "evaluate", "--model_dir", model, cwd=tmp_path
        )
    finally:
        code.unlink()
    assert run_command.is_one_clear_line(completed)
    words = "problem my_corpus:Numbers: cannot find the module my_corpus;"
    assert words in completed.err
    assert list(tmp_path.iterdir()) == []
