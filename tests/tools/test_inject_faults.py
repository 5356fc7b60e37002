"""Tests of the comparison of killed and resumed training runs."""

import json
import shutil
import sys

import numpy as np
import pytest
from inject_faults import compare, compare_resumed

from t2t_repro.runs.checkpoints import save
from tests import run_command

LOG = "step\tloss\ttarget_tokens_per_second\n50\t1.5\t{}\n"


@pytest.fixture
def two(tmp_path):
    """Two model directories that differ only in times."""
    folders = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        weights = {"w": np.arange(6, dtype="float32").reshape(2, 3)}
        moments = {"m/w": weights["w"] * 2}
        for step in (10, 20):
            meta = {"saved_at": number}
            save(folder / "checkpoints", step, weights, moments, meta)
        save(folder, 20, weights, name="averaged")
        (folder / "training_log.tsv").write_text(LOG.format(number * 100))
        (folder / "validation_log.tsv").write_text("step\tloss\n20\t2.5\n")
        for name in ("skipped_pairs.tsv", "hparams.yaml", "model.json", "vocab.model"):
            (folder / name).write_text(name)
        folders.append(folder)
    return folders


def test_ignores_times(two):
    # Weights and moments of two checkpoints, and weights of the average.
    assert compare(*two) == (5, [])


def change_a_bit(folder):
    weights = {"w": np.arange(6, dtype="float32").reshape(2, 3)}
    moments = {"m/w": weights["w"] * 2}
    moments["m/w"][1, 2] = np.nextafter(moments["m/w"][1, 2], np.float32(9e9))
    save(folder / "checkpoints", 10, weights, moments)


def change_the_sign_of_zero(folder):
    weights = {"w": np.arange(6, dtype="float32").reshape(2, 3)}
    weights["w"][0, 0] = -0.0
    save(folder, 20, weights, name="averaged")


def change_a_note(folder):
    path = folder / "checkpoints" / "step-00000010" / "checkpoint.json"
    path.write_text(path.read_text().replace('"step": 10', '"step": 11'))


def remove_a_checkpoint(folder):
    shutil.rmtree(folder / "checkpoints" / "step-00000010")


def change_a_loss(folder):
    (folder / "training_log.tsv").write_text(LOG.format(1).replace("1.5", "1.25"))


def leave_debris(folder):
    (folder / "checkpoints" / ".writing-step-00000030").mkdir()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_a_bit, "checkpoints/step-00000010/optimizer m/w"),
        (change_the_sign_of_zero, "averaged/weights w"),
        (change_a_note, "checkpoints/step-00000010/checkpoint.json step"),
        (remove_a_checkpoint, "checkpoints/step-00000010 is not in both"),
        (change_a_loss, "training_log.tsv"),
        (leave_debris, "checkpoints/.writing-step-00000030 was left behind"),
    ],
)
def test_names_the_difference(two, change, words):
    change(two[1])
    _, different = compare(*two)
    assert different == [words]


def test_ignores_checkpoints_of_interruptions_only(two):
    weights = {"w": np.zeros(6, "float32")}
    save(two[1] / "checkpoints", 13, weights)
    assert compare_resumed(*two) == (5, [])
    save(two[0] / "checkpoints", 30, weights)
    remains = "checkpoints/step-00000030 is not in both"
    assert compare_resumed(*two) == (5, [remains])


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--strategy", "mirrored", "--replicas", "2")])
def test_killed_runs_resume_bit_identically(flags):
    """The fourth run is killed while a checkpoint is being written."""
    tool = "tools/inject_faults.py"
    process = run_command.run_alone(
        tool, "--kills", "4", "--json", *flags, python=sys.executable
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert result["identical"] == 4
    assert all(kill["compared"] > 0 for kill in result["kills"])
    assert process.err.count("\n") == 4
