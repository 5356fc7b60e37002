"""A small training begun at an earlier revision goes on with the same losses.

`freeze_training.py` made what lies in `tests/data/continued_training`, a folder for
each revision; it says how another is made.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.training import freeze_training

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path for path in freeze_training.FROZEN.iterdir() if path.is_dir())
MOST_BYTES = 100_000

# Repeated, on one core or with the threads of sixteen, the ten losses and norms were
# the same bits; with other instructions (SSE4.1, AVX2, without oneDNN) they differed by
# 1e-7, a float32's last digit. One ten-thousandth of Adam's beta2 more or less changes
# losses by 1e-4 within ten updates, another mask of dropout by 1e-3 at once.
TOLERANCE = 1e-5
# The last digit that the log has of a number of about one is the sixth, of norm and
# share the fourth.
LOGGED = {"abs": 2e-4, "rel": 1e-6}

frozen_trainings = pytest.mark.parametrize(
    "frozen", FOLDERS, ids=lambda path: path.name
)


@pytest.fixture(autouse=True)
def this_checkout(monkeypatch):
    """Processes take this checkout's package, whatever is installed."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def recorded(folder):
    return json.loads((folder / freeze_training.LOSSES).read_text(encoding="utf-8"))


def assert_same_losses(found, expected):
    assert found["steps"] == expected["steps"]
    assert list(found["target_tokens"]) == expected["target_tokens"]
    for name in ("learning_rate", "loss", "gradient_norm"):
        assert found[name] == pytest.approx(expected[name], rel=TOLERANCE), name
    assert found["logged"] == pytest.approx(expected["logged"], **LOGGED)


def test_there_is_a_frozen_training():
    assert "7ec88a7" in [folder.name for folder in FOLDERS]


@frozen_trainings
def test_a_frozen_training_is_small_and_tells_nothing_of_the_machine(frozen):
    files = [path for path in frozen.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    meta = json.loads((frozen / "model" / "model.json").read_text(encoding="utf-8"))
    assert meta["data_dir"] == "data"
    # Events are called after the machine.
    assert not (frozen / "model" / "tensorboard").exists()


@pytest.mark.medium
@frozen_trainings
def test_a_training_begun_at_an_earlier_revision_goes_on_with_the_same_losses(
    frozen, tmp_path
):
    copy = shutil.copytree(frozen, tmp_path / "copy")
    found, said = freeze_training.go_on(copy)
    assert f"going on from step {freeze_training.STOPPED_AT} in" in said
    # Text, vocabulary and shards are used as they are.
    assert "building" not in said
    assert "encoding" not in said
    assert_same_losses(found, recorded(frozen))


@pytest.mark.slow
def test_this_revision_can_be_frozen_as_well(tmp_path):
    frozen = freeze_training.freeze("this", tmp_path)
    expected = recorded(frozen)
    found, _ = freeze_training.go_on(frozen)
    assert_same_losses(found, expected)
