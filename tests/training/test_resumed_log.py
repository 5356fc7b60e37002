"""Tests that a resumed training writes the same log as an uninterrupted one."""

import io

import pytest
import tensorflow as tf

from t2t_repro.training.monitor import Monitor
from tests.training import toy

pytestmark = pytest.mark.medium


@pytest.fixture
def without_tracing():
    """Runs steps as single operations: tracing takes longer than a few small steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def test_the_log_of_a_resumed_training_equals_an_uninterrupted_one(
    tmp_path, monkeypatch, without_tracing
):
    """A row's mean includes steps before the interruption."""
    monkeypatch.setattr("t2t_repro.training.monitor.LOG_STEPS", 2)

    def run(folder, train_steps, start=0):
        folder.mkdir(exist_ok=True)
        hparams = toy.HPARAMS.replace(train_steps=train_steps)
        loop = toy.loop(folder / "checkpoints", hparams)
        assert loop.restore() == start
        # The monitor expects five steps in all, also if this run ends earlier.
        monitor = Monitor(folder, 5, start, io.StringIO(), loop.unreported)
        assert loop.run(toy.batches, monitor, toy.never)
        rows = (folder / "training_log.tsv").read_text().splitlines()
        return [row.split("\t")[:3] + row.split("\t")[4:] for row in rows]

    expected = run(tmp_path / "whole", 5)
    assert [row[0] for row in expected] == ["step", "2", "4", "5"]
    folder = tmp_path / "resumed"
    run(folder, 1)
    for start, stop in ((1, 3), (3, 5)):
        # Rows written after the last checkpoint are repeated.
        with (folder / "training_log.tsv").open("a") as file:
            file.write(f"{start + 1}\t1\t1\t1\t1\t1\n{start + 2}\t1")
        rows = run(folder, stop, start)
        assert rows == expected[: len(rows)]
    assert rows == expected
