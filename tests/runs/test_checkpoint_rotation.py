"""What is removed is neither new, nor good, nor being read."""

import numpy as np
import pytest

from t2t_repro.runs import checkpoint_rotation, checkpoints
from t2t_repro.runs.averaging import average_checkpoints

DATA = "weights.data-00000-of-00001"


@pytest.fixture
def saved(tmp_path):
    """Saves checkpoints of one tensor, with an optimizer's state of one tensor."""

    def save(step, **meta):
        value = {"w": np.full(3, step, "float32")}
        return checkpoints.save(tmp_path, step, value, value, meta)

    return save


def steps(directory):
    return [c.step for c in checkpoints.list_checkpoints(directory)]


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_the_newest_are_kept_and_two_full_states(saved, tmp_path):
    for step in (1, 2, 3, 4, 5):
        saved(step)
    checkpoint_rotation.prune(tmp_path, keep=3)
    found = checkpoints.list_checkpoints(tmp_path)
    assert [(c.step, c.has_optimizer) for c in found] == [
        (3, False),
        (4, True),
        (5, True),
    ]
    files = {path.name for path in found[0].path.iterdir()}
    assert files == {"checkpoint.json", "weights.index", DATA}
    np.testing.assert_array_equal(found[0].tensors().read("w"), [3, 3, 3])


def test_a_few_are_all_kept(saved, tmp_path):
    saved(1)
    saved(2)
    checkpoint_rotation.prune(tmp_path, keep=20)
    assert steps(tmp_path) == [1, 2]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [2, 1]


@pytest.mark.parametrize("name", [".writing-step-00000002", ".removing-step-00000001"])
def test_what_an_interrupted_process_left_is_ignored_and_swept_away(
    saved, tmp_path, name
):
    saved(1)
    aside = tmp_path / name
    aside.mkdir()
    (aside / "weights.index").write_bytes(b"half")
    (aside / "checkpoint.json").write_text('{"step": 2}')
    assert steps(tmp_path) == [1]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [1]
    checkpoint_rotation.prune(tmp_path, keep=5)
    assert names(tmp_path) == ["step-00000001"]


def test_one_in_some_hours_is_kept_for_good(saved, tmp_path):
    """Pruning after each save, as the training does, or once, comes to the same."""
    hours = [0.0, 0.5, 1.1, 1.9, 2.0, 2.2, 3.5, 3.6, 3.7]
    for step, hour in enumerate(hours):
        saved(step, saved_at=1e9 + 3600 * hour)
        checkpoint_rotation.prune(tmp_path, keep=2, keep_every_hours=1.0)
    # Hour 0, at least an hour later 1.1, then 2.2, 3.5; and the newest two.
    assert steps(tmp_path) == [0, 2, 5, 6, 7, 8]
    assert [c.step for c in checkpoints.full_states(tmp_path)] == [8, 7]
    old = checkpoints.list_checkpoints(tmp_path)[:4]
    assert not any(c.has_optimizer for c in old)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [7, 8]


def test_one_that_was_not_planned_goes_with_the_next(saved, tmp_path):
    """What is averaged at the end does not depend on who stopped the training."""
    saved(10)
    saved(20)
    saved(23, unplanned=True)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [20, 23]
    saved(30)
    checkpoint_rotation.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [20, 30]
    # Both can be gone on from.
    found = checkpoints.list_checkpoints(tmp_path)
    assert [c.has_optimizer for c in found] == [True, True]


def test_what_is_read_stays_until_the_next_time(saved, tmp_path):
    first = saved(1)
    for step in (2, 3):
        saved(step)
    with first.held():
        checkpoint_rotation.prune(tmp_path, keep=1)
        assert steps(tmp_path) == [1, 3]
        np.testing.assert_array_equal(first.tensors().read("w"), [1, 1, 1])
    checkpoint_rotation.prune(tmp_path, keep=1)
    assert names(tmp_path) == ["step-00000003"]


def test_what_is_averaged_is_held(saved, tmp_path, monkeypatch):
    """The training prunes just when the first tensor is read."""
    chosen = [saved(step) for step in (1, 2, 3)]
    read = checkpoints.TensorFile.read

    def read_while_pruning(file, name):
        checkpoint_rotation.prune(tmp_path, keep=1)
        return read(file, name)

    monkeypatch.setattr(checkpoints.TensorFile, "read", read_while_pruning)
    averaged = average_checkpoints(chosen, tmp_path / "averaged")
    monkeypatch.undo()
    assert averaged.tensors().read("w").tolist() == [2, 2, 2]
    assert steps(tmp_path) == [1, 2, 3]
    checkpoint_rotation.prune(tmp_path, keep=1)
    assert steps(tmp_path) == [3]


def best(directory, *found, keep=2):
    """Reports step and BLEU pairs; returns the steps kept, the best first."""
    for step, bleu in found:
        weights = {"w": np.full(3, step, "float32")}
        checkpoint_rotation.keep_best(directory, keep, step, weights, bleu)
    return [checkpoint.step for checkpoint in checkpoint_rotation.ranked(directory)]


def test_the_best_are_kept_and_of_equals_the_earlier(tmp_path):
    assert best(tmp_path, (10, 5.0)) == [10]
    assert best(tmp_path, (20, 4.0), (30, 6.0)) == [30, 10]
    assert best(tmp_path, (40, 5.0), (50, 5.9)) == [30, 50]
    assert steps(tmp_path) == [30, 50]
    (checkpoint, _) = checkpoint_rotation.ranked(tmp_path)
    assert checkpoint.meta() == {"step": 30, "val_greedy_bleu": 6.0}
    np.testing.assert_array_equal(checkpoint.tensors().read("w"), [30, 30, 30])


def test_a_validation_that_is_made_again_changes_nothing(tmp_path):
    assert best(tmp_path, (10, 5.0), (20, 6.0), keep=1) == [20]
    before = (tmp_path / "step-00000020").stat()
    assert best(tmp_path, (10, 5.0), (20, 6.0), keep=1) == [20]
    assert (tmp_path / "step-00000020").stat() == before


def test_none_is_kept_unless_asked_for(tmp_path):
    assert best(tmp_path, (10, 5.0), keep=0) == []
    assert list(tmp_path.iterdir()) == []


def test_a_best_one_that_is_read_stays(tmp_path):
    best(tmp_path, (10, 5.0), keep=1)
    (first,) = checkpoint_rotation.ranked(tmp_path)
    with first.held():
        assert best(tmp_path, (20, 6.0), keep=1) == [20, 10]
    assert best(tmp_path, (30, 1.0), keep=1) == [20]
