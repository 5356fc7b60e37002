"""Tests of the selection and deletion of checkpoints."""

import numpy as np
import pytest

from t2t_repro.runs import checkpoint_rotation, checkpoints, tensor_file
from t2t_repro.runs.averaging import average_checkpoints

DATA = "weights.data-00000-of-00001"


@pytest.fixture
def saved(tmp_path):
    """Function that saves a checkpoint with one weight and one optimizer tensor."""

    def save(step, **meta):
        value = {"w": np.full(3, step, "float32")}
        return checkpoints.save(tmp_path, step, value, value, meta)

    return save


def steps(directory):
    return [c.step for c in checkpoints.list_checkpoints(directory)]


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_prune_keeps_the_newest_and_two_optimizer_states(saved, tmp_path):
    for step in (1, 2, 3, 4, 5):
        saved(step)
    checkpoint_rotation.prune(tmp_path, keep=3)
    remaining = checkpoints.list_checkpoints(tmp_path)
    assert [(c.step, c.has_optimizer) for c in remaining] == [
        (3, False),
        (4, True),
        (5, True),
    ]
    files = {path.name for path in remaining[0].path.iterdir()}
    assert files == {"checkpoint.json", "weights.index", DATA}
    np.testing.assert_array_equal(remaining[0].tensors().read("w"), [3, 3, 3])


def test_prune_keeps_all_of_a_few(saved, tmp_path):
    saved(1)
    saved(2)
    checkpoint_rotation.prune(tmp_path, keep=20)
    assert steps(tmp_path) == [1, 2]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [2, 1]


@pytest.mark.parametrize("name", [".writing-step-00000002", ".removing-step-00000001"])
def test_ignores_and_deletes_temporary_folders(saved, tmp_path, name):
    saved(1)
    aside = tmp_path / name
    aside.mkdir()
    (aside / "weights.index").write_bytes(b"half")
    (aside / "checkpoint.json").write_text('{"step": 2}')
    assert steps(tmp_path) == [1]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [1]
    checkpoint_rotation.prune(tmp_path, keep=5)
    assert names(tmp_path) == ["step-00000001"]


def test_keeps_one_checkpoint_per_interval(saved, tmp_path):
    """Prunes after each save, as training does."""
    hours = [0.0, 0.5, 1.1, 1.9, 2.0, 2.2, 3.5, 3.6, 3.7]
    for step, hour in enumerate(hours):
        saved(step, saved_at=1e9 + 3600 * hour)
        checkpoint_rotation.prune(tmp_path, keep=2, keep_every_hours=1.0)
    # Hours 0, 1.1, 2.2 and 3.5 are at least one hour apart; 3.6 and 3.7 are the newest.
    assert steps(tmp_path) == [0, 2, 5, 6, 7, 8]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [8, 7]
    old = checkpoints.list_checkpoints(tmp_path)[:4]
    assert not any(c.has_optimizer for c in old)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [7, 8]


def test_deletes_an_unplanned_checkpoint_after_the_next_save(saved, tmp_path):
    """The final average must not depend on interruptions."""
    saved(10)
    saved(20)
    saved(23, unplanned=True)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [20, 23]
    saved(30)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [20, 30]
    # Training can resume from both.
    remaining = checkpoints.list_checkpoints(tmp_path)
    assert [c.has_optimizer for c in remaining] == [True, True]


def test_keeps_a_checkpoint_that_is_being_read(saved, tmp_path):
    first = saved(1)
    for step in (2, 3):
        saved(step)
    with first.hold():
        checkpoint_rotation.prune(tmp_path, keep=1)
        assert steps(tmp_path) == [1, 3]
        np.testing.assert_array_equal(first.tensors().read("w"), [1, 1, 1])
    checkpoint_rotation.prune(tmp_path, keep=1)
    assert names(tmp_path) == ["step-00000003"]


def test_keeps_checkpoints_during_averaging(saved, tmp_path, monkeypatch):
    """Prunes the checkpoints when averaging reads the first tensor."""
    chosen = [saved(step) for step in (1, 2, 3)]
    read = tensor_file.TensorFile.read

    def read_while_pruning(file, name):
        checkpoint_rotation.prune(tmp_path, keep=1)
        return read(file, name)

    monkeypatch.setattr(tensor_file.TensorFile, "read", read_while_pruning)
    averaged = average_checkpoints(chosen, tmp_path / "averaged")
    monkeypatch.undo()
    assert averaged.tensors().read("w").tolist() == [2, 2, 2]
    assert steps(tmp_path) == [1, 2, 3]
    checkpoint_rotation.prune(tmp_path, keep=1)
    assert steps(tmp_path) == [3]


def best(directory, *scores, keep=2, data=None):
    """Reports (step, BLEU) pairs; returns the steps kept, by decreasing BLEU."""
    for step, bleu in scores:
        weights = {"w": np.full(3, step, "float32")}
        checkpoint_rotation.keep_best(directory, keep, step, weights, bleu, data)
    return [
        checkpoint.step
        for checkpoint in checkpoint_rotation.rank_checkpoints(directory)
    ]


def test_keeps_the_best_and_prefers_earlier_ties(tmp_path):
    assert best(tmp_path, (10, 5.0)) == [10]
    assert best(tmp_path, (20, 4.0), (30, 6.0)) == [30, 10]
    assert best(tmp_path, (40, 5.0), (50, 5.9)) == [30, 50]
    assert steps(tmp_path) == [30, 50]
    (checkpoint, _) = checkpoint_rotation.rank_checkpoints(tmp_path)
    assert checkpoint.meta() == {"step": 30, "val_greedy_bleu": 6.0}
    np.testing.assert_array_equal(checkpoint.tensors().read("w"), [30, 30, 30])


def test_keeps_the_lowest_loss(tmp_path):
    for step, loss in ((10, 3.0), (20, 2.0), (30, 2.5)):
        checkpoint_rotation.keep_best(
            tmp_path, 1, step, {"w": np.zeros(1)}, loss, key=checkpoint_rotation.LOSS
        )
    (checkpoint,) = checkpoint_rotation.rank_checkpoints(tmp_path)
    assert checkpoint.meta() == {"step": 20, "val_loss": 2.0}


def test_the_best_of_other_validation_data_are_not_compared(tmp_path):
    assert best(tmp_path, (10, 60.0), (20, 50.0)) == [10, 20]  # By an earlier version.
    assert best(tmp_path, (30, 55.0), data="A") == [10, 30]
    assert best(tmp_path, (40, 1.0), data="B") == [40]
    assert steps(tmp_path) == [40]
    assert best(tmp_path, (40, 2.0), (50, 3.0), data="B") == [50, 40]
    assert best(tmp_path, (50, 0.5), data="C") == [50]
    (checkpoint,) = checkpoint_rotation.rank_checkpoints(tmp_path)
    assert checkpoint.meta() == {"step": 50, "val_greedy_bleu": 0.5, "data": "C"}


def test_a_repeated_validation_changes_nothing(tmp_path):
    assert best(tmp_path, (10, 5.0), (20, 6.0), keep=1) == [20]
    before = (tmp_path / "step-00000020").stat()
    assert best(tmp_path, (10, 5.0), (20, 6.0), keep=1) == [20]
    assert (tmp_path / "step-00000020").stat() == before


def test_a_validation_deletes_temporary_folders(tmp_path):
    best(tmp_path, (10, 5.0))
    for name in (".writing-step-00000020", ".removing-step-00000005"):
        (tmp_path / name).mkdir()
    assert best(tmp_path, (20, 6.0)) == [20, 10]
    assert names(tmp_path) == ["step-00000010", "step-00000020"]


def test_keep_best_of_zero_saves_nothing(tmp_path):
    assert best(tmp_path, (10, 5.0), keep=0) == []
    assert list(tmp_path.iterdir()) == []


def test_keeps_a_best_checkpoint_that_is_being_read(tmp_path):
    best(tmp_path, (10, 5.0), keep=1)
    (first,) = checkpoint_rotation.rank_checkpoints(tmp_path)
    with first.hold():
        assert best(tmp_path, (20, 6.0), keep=1) == [20, 10]
    assert best(tmp_path, (30, 1.0), keep=1) == [20]
