"""Tests of asynchronous work in the training loop: results, checkpoints, workers."""

import errno
import signal
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training.workers import WorkerGoneError
from tests.training import toy


class SlowDisk:
    """Delays `checkpoints.save` until the event `may_write` is set."""

    def __init__(self, monkeypatch):
        self.may_write, self.began = threading.Event(), threading.Event()
        self._save = checkpoints.save
        monkeypatch.setattr(checkpoints, "save", self.save)

    def save(self, *args):
        self.began.set()
        assert self.may_write.wait(60)
        return self._save(*args)


@pytest.mark.medium
def test_writes_a_checkpoint_during_the_next_steps(tmp_path, monkeypatch):
    """The checkpoint must have the state of its step, not of later steps."""
    loop = toy.loop(tmp_path / "c", toy.HPARAMS.replace(checkpoint_steps=2))
    variables = loop.weights | loop.state
    start = {name: variable.numpy() for name, variable in variables.items()}
    for step in range(2):
        loop.update(toy.batch(step), tf.constant(step))
    expected = {name: variable.numpy() for name, variable in variables.items()}
    for name, variable in variables.items():
        variable.assign(start[name])

    disk = SlowDisk(monkeypatch)

    def batches(step):
        for number in count(step):
            if number == 3:  # The next step has been started.
                assert disk.began.wait(60)
                assert toy.steps_saved(tmp_path / "c") == []
                disk.may_write.set()
            yield toy.batch(number)

    assert loop.run(batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path / "c") == [2, 4, 6]
    saved = checkpoints.list_checkpoints(tmp_path / "c")[0].tensors()
    for name in saved.shapes():
        np.testing.assert_array_equal(saved.read(name), expected[name], err_msg=name)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_finishes_writing_a_checkpoint_when_the_training_fails(
    tmp_path, monkeypatch, error
):
    disk = SlowDisk(monkeypatch)
    loop = toy.fake_loop(tmp_path, checkpoint_steps=2)

    def batches(step):
        yield from (toy.batch(number) for number in range(3))
        disk.may_write.set()
        raise error

    with pytest.raises(error):
        loop.run(batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [2]


def test_an_unwritable_checkpoint_stops_the_training(tmp_path):
    """The training stops at the next step, not at the next checkpoint."""
    loop = toy.fake_loop(tmp_path / "c", checkpoint_steps=5, train_steps=20)
    (tmp_path / "c").write_text("no folder")
    with pytest.raises(UserError, match=r"cannot write .*step-00000005"):
        loop.run(lambda step: slowly(toy.batch(0)), toy.monitor(), toy.never)
    assert loop.step < 10


def test_a_finished_training_completes_an_interrupted_deletion(tmp_path, monkeypatch):
    """No later checkpoint would delete the optimizer state of the oldest one."""
    settings = {"checkpoint_steps": 2, "train_steps": 6}
    unlink = Path.unlink

    def fail(path, **options):
        if path.name.startswith("optimizer."):
            raise OSError(errno.EIO, "broken disk")
        unlink(path, **options)

    loop = toy.fake_loop(tmp_path, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(OSError, match="broken disk"):
            loop.run(toy.batches, toy.monitor(), toy.never)
    saved = checkpoints.list_checkpoints(tmp_path)
    assert [each.has_optimizer for each in saved] == [True, True, True]
    again = toy.fake_loop(tmp_path, **settings)
    assert again.restore() == 6
    assert again.run(toy.batches, toy.monitor(), toy.never)
    left = [(c.step, c.has_optimizer) for c in checkpoints.list_checkpoints(tmp_path)]
    assert left == [(2, False), (4, True), (6, True)]


def slowly(batch):
    while True:
        time.sleep(0.1)
        yield batch


def test_reads_a_result_after_starting_the_next_step(tmp_path):
    """It is read earlier only for a checkpoint, a validation or the end."""
    settings = {"checkpoint_steps": 3, "eval_steps": 5, "train_steps": 7}
    loop, events = toy.fake_loop(tmp_path, **settings), []
    save = loop.save

    class Result:
        def __init__(self, step):
            self.step = step

        def __array__(self, *args, **options):
            events.append(f"read {self.step}")
            return np.ones(5, np.float32)

    def begin(batch, step):
        events.append(f"begin {int(step) + 1}")
        return Result(int(step) + 1)

    def record_save(*args, **options):
        events.append(f"save {loop.step}")
        save(*args, **options)

    loop.update, loop.save = begin, record_save
    loop.run(toy.batches, toy.monitor(), lambda step: events.append(f"validate {step}"))
    assert events == [
        *("begin 1", "begin 2", "read 1", "begin 3", "read 2", "read 3", "save 3"),
        *("begin 4", "begin 5", "read 4", "read 5", "validate 5"),
        *("begin 6", "read 6", "save 6"),
        *("begin 7", "read 7", "save 7", "validate 7", "save 7"),
    ]


@pytest.mark.parametrize("late", [False, True])
def test_saves_all_steps_when_a_worker_has_ended(tmp_path, late):
    """The error occurs when step 6 starts, or (`late`) when its result is read."""
    loop = toy.fake_loop(tmp_path, train_steps=30)
    loop.workers.is_distributed, loop.workers.sums = True, list
    gone = tf.errors.UnavailableError(None, None, "aborted by: no connection")

    class Broken:
        def __array__(self, *args, **options):
            raise gone

    def update(batch, step):
        if int(step) == 5 and not late:
            raise gone
        return Broken() if int(step) >= 5 else [1.0, 9.0, 0.9, 1.0, 0.1]

    loop.update = update
    monitor = toy.monitor()
    with pytest.raises(WorkerGoneError, match=r"\(no connection\)"):
        loop.run(toy.batches, monitor, toy.never)
    assert toy.steps_saved(tmp_path) == [5]
    assert len(monitor.unreported()) == 5


@pytest.mark.parametrize("start", [0, 4])
def test_workers_check_for_stop_requests_every_ten_steps(tmp_path, start):
    """The steps of the checks do not depend on the first step."""
    loop = toy.fake_loop(tmp_path, train_steps=40)
    loop.step, checks = start, []
    loop.workers.is_distributed = True

    def sums(values):
        stop, *others = values
        checks.append((int(loop.step), bool(stop)))
        return [float(len(checks) == 4), *others]  # Another worker requests a stop.

    loop.workers.sums = sums
    batches = toy.batches_with_signals(15 - start, signal.SIGTERM)
    assert not loop.run(lambda step: batches, toy.monitor(), toy.never)
    # The first call checks for an interrupted validation.
    expected = [(start, False), (0, False), (9, False), (19, True), (29, True)]
    assert checks == (expected[:4] if start == 0 else [expected[0], *expected[2:]])
    assert toy.steps_saved(tmp_path) == [20 if start == 0 else 30]
