"""Tests of the training loop: resuming, saving, validating and stopping."""

import io
import shutil
import signal
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training import checkpoint_writer, stop_requests
from t2t_repro.training.monitor import Monitor
from tests.training import toy


def test_restore_returns_0_without_checkpoints(tmp_path):
    assert toy.fake_loop(tmp_path).restore() == 0


def test_other_weights_become_the_checkpoint_of_step_0(tmp_path):
    loop, copy = toy.fake_loop(tmp_path / "c"), tmp_path / "origin"
    names = [name for name in loop.weights if name.endswith("kernel")]

    def assign(weights):
        for name in names:
            weights[name].assign(tf.ones_like(weights[name]))

    loop.begin_from(assign, copy)
    assert toy.steps_saved(tmp_path / "c") == [0]
    (saved,) = checkpoints.list_checkpoints(tmp_path / "c")
    assert saved.has_optimizer
    for tensors in (saved.tensors(), checkpoints.Checkpoint(copy, 0).tensors()):
        assert all((tensors.read(name) == 1).all() for name in names)


def test_rejects_a_checkpoint_of_another_model(tmp_path):
    toy.fake_loop(tmp_path, d_ff=32).save()
    with pytest.raises(UserError, match=r"step-00000000.*use the hyper-parameters"):
        toy.fake_loop(tmp_path).restore()


@pytest.fixture(scope="module")
def saved_twice(tmp_path_factory):
    """A folder with checkpoints of steps 3 and 6."""
    folder = tmp_path_factory.mktemp("saved")
    loop = toy.loop(folder, toy.HPARAMS.replace(checkpoint_steps=3))
    loop.run(toy.batches, toy.monitor(), toy.never)
    return folder


FILES = ["checkpoint.json", "weights.index", "optimizer.index"]
FILES += [f"{part}.data-00000-of-00001" for part in ("weights", "optimizer")]


def damaged_copy(original, folder, name, fault):
    """Copies checkpoints; deletes, shortens or alters a file of the newest one."""
    path = shutil.copytree(original, folder) / "step-00000006" / name
    contents = bytearray(path.read_bytes())
    path.unlink()
    if fault == "cut short":
        path.write_bytes(contents[: len(contents) // 2])
    elif fault == "altered":
        contents[len(contents) // 2] ^= 0x10
        path.write_bytes(contents)


@pytest.fixture(scope="module")
def restoring_loop(tmp_path_factory):
    return toy.loop(tmp_path_factory.mktemp("restoring"))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", ["deleted", "cut short", "altered"])
def test_resumes_from_the_checkpoint_before_a_damaged_one(
    saved_twice, restoring_loop, tmp_path, name, fault
):
    folder = tmp_path / "copy"
    damaged_copy(saved_twice, folder, name, fault)
    restoring_loop.checkpoint_dir, lines = folder, []
    assert restoring_loop.restore(lines.append) == 3
    assert len(lines) == 2
    assert lines[0].startswith(f"damaged checkpoint: {folder / 'step-00000006'}")
    renamed = folder / "damaged-step-00000006"
    assert lines[1] == f"renamed the damaged checkpoint to {renamed}"


def test_renames_nothing_if_all_checkpoints_are_damaged(saved_twice, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(saved_twice, folder)
    for path in folder.glob("*/optimizer.index"):
        path.unlink()
    with pytest.raises(UserError, match="cannot resume because the newest checkpoints"):
        toy.loop(folder).restore(print)
    assert toy.steps_saved(folder) == [3, 6]


def test_saves_every_few_steps_and_at_the_end(tmp_path):
    loop = toy.fake_loop(tmp_path, checkpoint_steps=4, train_steps=10)
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [4, 8, 10]
    saved = checkpoints.list_checkpoints(tmp_path)
    assert [c.has_optimizer for c in saved] == [False, True, True]


def test_saves_every_few_minutes(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    fake = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now)
    monkeypatch.setattr(checkpoint_writer, "time", fake)
    loop = toy.fake_loop(tmp_path, checkpoint_minutes=1.0, train_steps=7)
    clock.now += 1000  # Building and restoring do not count towards the interval.

    def batches(step):
        for number in count():
            clock.now += 25
            yield toy.batch(number)

    loop.run(batches, toy.monitor(), toy.never)
    # Three steps of 25 s take more than a minute; step 7 is the last.
    assert toy.steps_saved(tmp_path) == [3, 6, 7]


def test_keeps_a_limited_number_of_checkpoints(tmp_path):
    loop = toy.fake_loop(
        tmp_path, checkpoint_steps=1, keep_checkpoints=2, average_last=2, train_steps=5
    )
    loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [4, 5]


@pytest.mark.parametrize(
    ("every", "expected"), [(4, [4, 8, 10]), (5, [5, 10]), (0, [10])]
)
def test_validates_on_schedule_and_at_the_end(tmp_path, every, expected):
    loop = toy.fake_loop(tmp_path, eval_steps=every, train_steps=10)
    validated = []
    loop.run(toy.batches, toy.monitor(), validated.append)
    assert validated == expected


def test_saves_the_last_state_before_validating_it(tmp_path):
    loop = toy.fake_loop(tmp_path, train_steps=2)
    saved = []
    loop.run(
        toy.batches, toy.monitor(), lambda step: saved.extend(toy.steps_saved(tmp_path))
    )
    assert saved == [2]


def test_requests_batches_from_the_restored_step(tmp_path):
    toy.fake_loop(tmp_path, train_steps=2).run(toy.batches, toy.monitor(), toy.never)
    loop = toy.fake_loop(tmp_path, train_steps=4)
    loop.restore()
    starts = []

    def batches(step):
        starts.append(step)
        return toy.batches(step)

    loop.run(batches, toy.monitor(), toy.never)
    assert starts == [2]
    assert loop.step == 4


@pytest.mark.parametrize("field", ["loss", "gradient_norm"])
def test_reports_the_pairs_of_a_step_that_is_not_finite(tmp_path, field):
    loop = toy.fake_loop(tmp_path)
    values = dict(loss=1.0, tokens=9.0, token_ratio=0.9, gradient_norm=1.0, rate=0.1)
    results = iter([values, values, values | {field: float("nan")}, *[values] * 3])
    loop.update = lambda *_: list(next(results).values())
    stream = io.StringIO()
    monitor = Monitor(None, 6, 0, stream)
    pairs = {2: [7, 11]}
    assert loop.run(toy.batches, monitor, toy.never, pairs_of=pairs.__getitem__)
    skipped, report = stream.getvalue().splitlines()
    assert skipped.startswith("skipped: the loss of step 3 is ")
    assert skipped.endswith("; 1 skipped so far; sentence pairs 7, 11")
    assert "loss 1.0000" in report  # The mean excludes the skipped step.


def test_ten_skipped_steps_in_a_row_stop_the_training(tmp_path):
    """Nine in a row do not. The state at the stop is not saved."""
    loop = toy.fake_loop(tmp_path, train_steps=30, checkpoint_steps=5)
    good = [1.0, 9.0, 0.9, 1.0, 0.1]
    bad = [float("inf"), *good[1:]]
    results = iter([*[good] * 5, *[bad] * 9, good, *[bad] * 10])
    loop.update = lambda *_: next(results)
    with pytest.raises(UserError, match=r"step 25 is inf.*diverged"):
        loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [5, 10, 15, 20]


@pytest.mark.medium
def test_a_skipped_step_changes_no_weight_or_moment(tmp_path):
    """After ten such steps, the training stops."""

    def state(loop):
        values = {**loop.weights, **loop.state}
        return {name: value.numpy() for name, value in values.items()}

    loop = toy.loop(tmp_path, toy.HPARAMS.replace(train_steps=20))
    for step in range(2):
        loop.update(toy.batch(step), tf.constant(step))
    before = state(loop)
    infinite = "decoder/layer_0/feed_forward/output/bias"
    loop.weights[infinite].assign(np.full([16], np.inf))
    result = loop.update(toy.batch(2), tf.constant(2))
    assert np.isnan(float(result[0]))
    after = state(loop)
    assert np.isinf(after.pop(infinite)).all()
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    loop.weights["embedding/table"].assign(np.full([toy.VOCAB_SIZE, 16], np.nan))
    with pytest.raises(UserError, match="loss of step 10 is nan"):
        loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == []


def test_only_the_chief_writes(tmp_path):
    loop = toy.loop(tmp_path, is_chief=False)
    loop.update = lambda *_: [1.0, 9.0, 0.9, 1.0, 0.1]
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("bound", "accumulates"), [(0, False), (63, True), (64, False), (100, False)]
)
def test_accumulates_only_if_a_batch_exceeds_the_device_limit(
    tmp_path, bound, accumulates
):
    hparams = toy.HPARAMS.replace(tokens_per_batch=64, max_tokens_per_device=bound)
    assert toy.loop(tmp_path, hparams).accumulates is accumulates


def test_restores_the_number_of_skipped_steps(tmp_path):
    loop = toy.fake_loop(tmp_path, train_steps=3)
    bad = [float("nan"), 9.0, 0.9, 1.0, 0.1]
    loop.update = lambda *_: bad
    loop.run(toy.batches, toy.monitor(), toy.never)
    loop = toy.fake_loop(tmp_path, train_steps=4)
    loop.restore()
    loop.update = lambda *_: bad
    stream = io.StringIO()
    loop.run(toy.batches, Monitor(None, 4, 3, stream), toy.never)
    assert "; 4 skipped so far" in stream.getvalue()


@pytest.mark.parametrize(
    "meta", [{"unreported": [[1, 2]]}, {"unreported": 3}, {"skipped": "many"}]
)
def test_treats_invalid_progress_as_damage(tmp_path, meta):
    loop = toy.fake_loop(tmp_path)
    weights, state = loop.weights, loop.state
    checkpoints.save(tmp_path, 3, weights, state)
    checkpoints.save(tmp_path, 6, weights, state, meta)
    messages = []
    assert toy.fake_loop(tmp_path).restore(messages.append) == 3
    assert "checkpoint.json has invalid training progress" in messages[0]


def test_early_stopping_ends_the_training_at_a_validation(tmp_path):
    loop = toy.fake_loop(tmp_path, eval_steps=2, early_stopping=1, train_steps=9)
    validated = []
    assert loop.run(
        toy.batches, toy.monitor(), lambda step: validated.append(step) or step == 4
    )
    assert (loop.step, loop.ended) == (4, True)
    assert validated == [2, 4]
    assert toy.steps_saved(tmp_path) == [4]


def test_the_hours_of_all_runs_end_the_training(tmp_path, monkeypatch):
    """Each step takes an hour; the first run is interrupted after two of them."""
    clock = SimpleNamespace(now=0.0)
    fake = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(stop_requests, "time", fake)
    monkeypatch.setattr("t2t_repro.training.loop.time", fake)
    settings = {"max_hours": 3.0, "train_steps": 9}

    def batches(step, signals=()):
        for batch in toy.batches_with_signals(2, *signals):
            yield batch
            clock.now += 3600

    loop, validated = toy.fake_loop(tmp_path, **settings), []
    interrupted = partial(batches, signals=[signal.SIGINT])
    assert not loop.run(interrupted, toy.monitor(), validated.append)
    clock.now += 7200  # The time between runs does not count.
    loop = toy.fake_loop(tmp_path, **settings)
    assert loop.restore() == 2
    monitor = Monitor(tmp_path, 9, 2, io.StringIO())
    assert loop.run(batches, monitor, validated.append)
    assert (loop.step, loop.ended, validated) == (3, True, [3])
    assert toy.fake_loop(tmp_path, **settings).restore() == 3
