"""Tests of signals, and of checkpoints and validations around an interruption."""

import io
import signal

import pytest

from t2t_repro.training.monitor import Monitor
from tests.training import toy


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path, number):
    before = signal.getsignal(number)
    loop = toy.fake_loop(tmp_path)
    finished = loop.run(
        lambda step: toy.batches_with_signals(3, number), toy.monitor(), toy.never
    )
    assert not finished
    assert loop.step == 3
    assert toy.steps_saved(tmp_path) == [3]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_saves_and_training_continues(tmp_path, number):
    """The checkpoint is in addition to those of the schedule, and deleted by them."""
    before, stream, found = signal.getsignal(number), io.StringIO(), {}
    loop = toy.fake_loop(tmp_path, train_steps=8, checkpoint_steps=6)

    def batches(step):
        for number_of_batch, batch in enumerate(toy.batches_with_signals(3, number)):
            found[number_of_batch] = toy.steps_saved(tmp_path)
            yield batch

    assert loop.run(batches, Monitor(None, 8, 0, stream), toy.never)
    assert found[3] == []
    assert found[4] == found[5] == [3]
    assert toy.steps_saved(tmp_path) == [6, 8]
    assert stream.getvalue().count("saved a checkpoint of step 3") == 1
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_interrupts_at_once(tmp_path):
    loop = toy.fake_loop(tmp_path)
    twice = signal.SIGINT, signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        loop.run(
            lambda step: toy.batches_with_signals(2, *twice), toy.monitor(), toy.never
        )
    assert toy.steps_saved(tmp_path) == []


def test_a_checkpoint_saved_on_interruption_is_not_averaged(tmp_path):
    settings = {"checkpoint_steps": 4, "train_steps": 10, "keep_checkpoints": 3}
    settings["average_last"] = 3
    loop = toy.fake_loop(tmp_path, **settings)
    assert not loop.run(
        lambda step: toy.batches_with_signals(6, signal.SIGTERM),
        toy.monitor(),
        toy.never,
    )
    assert toy.steps_saved(tmp_path) == [4, 6]
    loop = toy.fake_loop(tmp_path, **settings)
    assert loop.restore() == 6
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [4, 8, 10]


def test_keeps_a_scheduled_checkpoint_saved_on_interruption(tmp_path):
    loop = toy.fake_loop(tmp_path, checkpoint_steps=3, train_steps=7)
    loop.run(
        lambda step: toy.batches_with_signals(2, signal.SIGTERM),
        toy.monitor(),
        toy.never,
    )
    loop = toy.fake_loop(tmp_path, checkpoint_steps=3, train_steps=7)
    loop.restore()
    loop.run(toy.batches, toy.monitor(), toy.never)
    assert toy.steps_saved(tmp_path) == [3, 6, 7]


def test_repeats_an_interrupted_validation(tmp_path):
    """The checkpoint of the step was saved, but the validation is not recorded."""
    settings = {"checkpoint_steps": 4, "eval_steps": 4, "train_steps": 10}

    class KilledError(Exception):
        pass

    def kill(step):
        raise KilledError

    def monitor(start):
        return Monitor(tmp_path, 10, start, io.StringIO())

    (tmp_path / "c").mkdir()
    loop = toy.fake_loop(tmp_path / "c", **settings)
    with pytest.raises(KilledError):
        loop.run(toy.batches, monitor(0), kill)
    loop = toy.fake_loop(tmp_path / "c", **settings)
    assert loop.restore() == 4
    second, validated = monitor(4), []

    def validate(step):
        validated.append(step)
        second.record_validation(step, 1.0, None)

    assert loop.run(toy.batches, second, validate)
    assert validated == [4, 8, 10]
    # Recorded validations are not repeated.
    loop = toy.fake_loop(tmp_path / "c", **settings)
    assert loop.restore() == 10
    assert loop.run(toy.batches, monitor(10), kill)
