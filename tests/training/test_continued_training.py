"""Tests that a training of an earlier revision resumes with the same losses.

`freeze_training.py` creates the folders of `tests/data/continued_training`, one per
revision.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.training import freeze_training

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path for path in freeze_training.FROZEN.iterdir() if path.is_dir())
MOST_BYTES = 100_000

# The ten losses and norms are bit-identical with 1 and 16 threads, and differ by 1e-7
# (float32 rounding) with other instructions (SSE4.1, AVX2, no oneDNN). A change of
# Adam's beta2 by 1e-4 changes losses by 1e-4 within ten steps, and another dropout mask
# changes them by 1e-3 at once.
TOLERANCE = 1e-5
# The log has six decimals for the loss, and four for norm and token ratio.
LOGGED = {"abs": 2e-4, "rel": 1e-6}

frozen_trainings = pytest.mark.parametrize(
    "frozen", FOLDERS, ids=lambda path: path.name
)


@pytest.fixture
def this_checkout(forked_python, monkeypatch):
    """Makes subprocesses import the package from this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def read_losses(folder):
    return json.loads((folder / freeze_training.LOSSES).read_text(encoding="utf-8"))


def assert_same_losses(actual, expected):
    assert actual["steps"] == expected["steps"]
    assert list(actual["target_tokens"]) == expected["target_tokens"]
    for name in ("learning_rate", "loss", "gradient_norm"):
        assert actual[name] == pytest.approx(expected[name], rel=TOLERANCE), name
    assert actual["logged"] == pytest.approx(expected["logged"], **LOGGED)


def test_a_frozen_training_exists():
    assert "7ec88a7" in [folder.name for folder in FOLDERS]


@frozen_trainings
def test_a_frozen_training_is_small_and_independent_of_the_machine(frozen):
    files = [path for path in frozen.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    meta = json.loads((frozen / "model" / "model.json").read_text(encoding="utf-8"))
    assert meta["data_dir"] == "data"
    # The names of event files contain the name of the machine.
    assert not (frozen / "model" / "tensorboard").exists()


@pytest.mark.medium
@pytest.mark.usefixtures("this_checkout")
@frozen_trainings
def test_resumes_an_earlier_revision_with_the_same_losses(frozen, tmp_path):
    copy = shutil.copytree(frozen, tmp_path / "copy")
    losses, output = freeze_training.resume(copy)
    assert f"resuming from step {freeze_training.STOPPED_AT} in" in output
    # The existing vocabulary and shards are used.
    assert "building" not in output
    assert "encoding" not in output
    assert_same_losses(losses, read_losses(frozen))


@pytest.mark.slow
@pytest.mark.usefixtures("this_checkout")
def test_freezes_this_revision(tmp_path):
    frozen = freeze_training.freeze("this", tmp_path)
    expected = read_losses(frozen)
    losses, _ = freeze_training.resume(frozen)
    assert_same_losses(losses, expected)
