"""The loop goes on where it stopped, saves when due and stops when asked."""

import io
import os
import shutil
import signal
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training import checkpoint_writer
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.step import StepResult
from tests.training import toy


def tensors(checkpoint):
    """Returns everything a checkpoint holds, weights and moments."""
    found = {}
    for part in ("weights", "optimizer"):
        file = checkpoint.tensors(part)
        found |= {f"{part}/{name}": file.read(name) for name in file.shapes()}
    return found


def untrained(directory, **changes):
    """A loop whose updates cost nothing, to test what surrounds them."""
    loop = toy.loop(directory, toy.HPARAMS.replace(**changes))
    fine = StepResult(
        loss=1.0, tokens=9.0, token_ratio=0.9, gradient_norm=1.0, rate=0.1
    )
    loop._update = lambda *_: list(vars(fine).values())
    return loop


def steps_saved(directory):
    return [c.step for c in checkpoints.list_checkpoints(directory)]


def signalled(at, *signals):
    """Batches that send this process signals while one of them is fetched."""
    for step in count():
        if step == at:
            for number in signals:
                os.kill(os.getpid(), number)
        yield toy.batch(step)


@pytest.mark.medium
def test_three_steps_and_three_more_are_six_bit_for_bit(tmp_path):
    """With dropout on: its masks are a function of the step."""
    whole = toy.loop(tmp_path / "whole")
    assert whole.run(toy.batches, toy.monitor(), toy.never)

    half = toy.loop(tmp_path / "parts", toy.HPARAMS.replace(train_steps=3))
    assert half.run(toy.batches, toy.monitor(), toy.never)
    # Other initial weights: all that counts must come out of the checkpoint.
    rest = toy.loop(tmp_path / "parts")
    for weight in rest.weights.values():
        weight.assign(weight.numpy() + 1)
    assert rest.restore() == rest.step == 3
    assert rest.run(toy.batches, toy.monitor(), toy.never)

    (one,) = checkpoints.list_checkpoints(tmp_path / "whole")
    other = checkpoints.list_checkpoints(tmp_path / "parts")[-1]
    assert one.step == other.step == 6
    expected, found = tensors(one), tensors(other)
    assert len(expected) == 3 * len(whole.weights) == len(found)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_there_is_nothing_to_restore_at_first(tmp_path):
    assert untrained(tmp_path).restore() == 0


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    untrained(tmp_path, d_ff=32).save()
    with pytest.raises(UserError, match=r"step-00000000.*other hyper-parameters"):
        untrained(tmp_path).restore()


@pytest.fixture(scope="module")
def saved_twice(tmp_path_factory):
    """Checkpoints of steps 3 and 6 of a training, and its state at 6."""
    folder = tmp_path_factory.mktemp("saved")
    loop = toy.loop(folder, toy.HPARAMS.replace(checkpoint_steps=3))
    loop.run(toy.batches, toy.monitor(), toy.never)
    return folder, tensors(checkpoints.list_checkpoints(folder)[-1])


FILES = ["checkpoint.json"]
FILES += [
    f"{part}.{file}"
    for part in ("weights", "optimizer")
    for file in ("index", "data-00000-of-00001")
]


def damage(checkpoint, name, fault):
    """Deletes, shortens or alters one of the files of a checkpoint."""
    path = checkpoint / name
    contents = bytearray(path.read_bytes())
    path.unlink()
    if fault == "cut short":
        path.write_bytes(contents[: len(contents) // 2])
    elif fault == "altered":
        contents[len(contents) // 2] ^= 0x10
        path.write_bytes(contents)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", ["deleted", "cut short", "altered"])
def test_a_damaged_checkpoint_is_renamed_and_the_previous_one_restored(
    saved_twice, tmp_path, name, fault
):
    original, _ = saved_twice
    folder = tmp_path / "copy"
    shutil.copytree(original, folder)
    damage(folder / "step-00000006", name, fault)
    loop, lines = toy.loop(folder), []
    assert loop.restore(lines.append) == 3
    assert len(lines) == 2
    assert lines[0].startswith(f"damaged: {folder / 'step-00000006'}")
    assert lines[1] == f"set aside as {folder / 'damaged-step-00000006'}"


@pytest.mark.medium
def test_training_from_the_previous_checkpoint_ends_with_the_same_bits(
    saved_twice, tmp_path
):
    original, expected = saved_twice
    folder = tmp_path / "copy"
    shutil.copytree(original, folder)
    damage(folder / "step-00000006", "checkpoint.json", "deleted")
    loop = toy.loop(folder)
    assert loop.restore(lambda line: None) == 3
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    restored = tensors(checkpoints.list_checkpoints(folder)[-1])
    for tensor, value in expected.items():
        np.testing.assert_array_equal(restored[tensor], value, err_msg=tensor)


def test_without_a_whole_checkpoint_nothing_is_renamed(saved_twice, tmp_path):
    original, _ = saved_twice
    folder = tmp_path / "copy"
    shutil.copytree(original, folder)
    for path in folder.glob("*/optimizer.index"):
        path.unlink()
    with pytest.raises(UserError, match="no whole checkpoint is left"):
        toy.loop(folder).restore(print)
    assert steps_saved(folder) == [3, 6]


def test_checkpoints_by_steps_and_one_at_the_end(tmp_path):
    loop = untrained(tmp_path, checkpoint_steps=4, train_steps=10)
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == [4, 8, 10]
    found = checkpoints.list_checkpoints(tmp_path)
    assert [c.has_optimizer for c in found] == [False, True, True]


def test_checkpoints_by_minutes(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    fake = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now)
    monkeypatch.setattr(checkpoint_writer, "time", fake)
    loop = untrained(tmp_path, checkpoint_minutes=1.0, train_steps=7)
    clock.now += 1000  # Building and restoring are no part of the first interval.

    def batches(step):
        for number in count():
            clock.now += 25
            yield toy.batch(number)

    loop.run(batches, toy.monitor(), toy.never)
    # A minute has passed with the third update of 25 s; the seventh is the last.
    assert steps_saved(tmp_path) == [3, 6, 7]


def test_only_so_many_checkpoints_are_kept(tmp_path):
    loop = untrained(
        tmp_path, checkpoint_steps=1, keep_checkpoints=2, average_last=2, train_steps=5
    )
    loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == [4, 5]


@pytest.mark.parametrize(
    ("every", "expected"), [(4, [4, 8, 10]), (5, [5, 10]), (0, [10])]
)
def test_validation_keeps_its_schedule_and_ends_the_training(tmp_path, every, expected):
    loop = untrained(tmp_path, eval_steps=every, train_steps=10)
    asked = []
    loop.run(toy.batches, toy.monitor(), asked.append)
    assert asked == expected


def test_the_last_state_is_saved_before_it_is_validated(tmp_path):
    loop = untrained(tmp_path, train_steps=2)
    saved = []
    loop.run(
        toy.batches, toy.monitor(), lambda step: saved.extend(steps_saved(tmp_path))
    )
    assert saved == [2]


def test_batches_are_asked_for_from_the_step_reached(tmp_path):
    untrained(tmp_path, train_steps=2).run(toy.batches, toy.monitor(), toy.never)
    loop = untrained(tmp_path, train_steps=4)
    loop.restore()
    asked = []

    def batches(step):
        asked.append(step)
        return toy.batches(step)

    loop.run(batches, toy.monitor(), toy.never)
    assert asked == [2]
    assert loop.step == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path, number):
    before = signal.getsignal(number)
    loop = untrained(tmp_path)
    done = loop.run(lambda step: signalled(3, number), toy.monitor(), toy.never)
    assert not done
    assert loop.step == 3
    assert steps_saved(tmp_path) == [3]
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_interrupts_at_once(tmp_path):
    loop = untrained(tmp_path)
    twice = signal.SIGINT, signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        loop.run(lambda step: signalled(2, *twice), toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == []


@pytest.mark.parametrize("field", ["loss", "gradient_norm"])
def test_a_loss_or_gradient_that_is_not_finite_is_told_with_its_pairs(tmp_path, field):
    loop = untrained(tmp_path)
    values = dict(loss=1.0, tokens=9.0, token_ratio=0.9, gradient_norm=1.0, rate=0.1)
    results = iter([values, values, values | {field: float("nan")}, *[values] * 3])
    loop._update = lambda *_: list(next(results).values())
    told = io.StringIO()
    monitor = Monitor(None, 6, 0, told)
    pairs = {2: [7, 11]}
    assert loop.run(toy.batches, monitor, toy.never, pairs_of=pairs.__getitem__)
    skipped, report = told.getvalue().splitlines()
    assert skipped.startswith("skipped: the loss of step 3 is ")
    assert skipped.endswith("; 1 skipped so far; sentence pairs 7, 11")
    assert "loss 1.0000" in report  # The mean of the updates that were made.


def test_ten_skipped_updates_in_a_row_stop_the_training(tmp_path):
    """Nine do not; what is saved is from before."""
    loop = untrained(tmp_path, train_steps=30, checkpoint_steps=5)
    fine = [1.0, 9.0, 0.9, 1.0, 0.1]
    bad = [float("inf"), *fine[1:]]
    results = iter([*[fine] * 5, *[bad] * 9, fine, *[bad] * 10])
    loop._update = lambda *_: next(results)
    with pytest.raises(UserError, match=r"step 25 is inf.*diverged"):
        loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == [5, 10, 15, 20]


def test_a_skipped_update_leaves_weights_and_moments_as_they_are(tmp_path):
    def state(loop):
        values = {**loop.weights, **loop.state}
        return {name: value.numpy() for name, value in values.items()}

    loop = toy.loop(tmp_path, toy.HPARAMS.replace(train_steps=2))
    loop.run(toy.batches, toy.monitor(), toy.never)
    before = state(loop)
    spoilt = "decoder/layer_0/feed_forward/output/bias"
    loop.weights[spoilt].assign(np.full([16], np.inf))
    result = loop._update(toy.batch(2), tf.constant(2))
    assert np.isnan(float(result[0]))
    after = state(loop)
    assert np.isinf(after.pop(spoilt)).all()
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_weights_that_are_not_finite_are_noticed_by_the_real_update(tmp_path):
    loop = toy.loop(tmp_path, toy.HPARAMS.replace(train_steps=20))
    loop.weights["embedding/table"].assign(np.full([toy.VOCAB_SIZE, 16], np.nan))
    with pytest.raises(UserError, match="loss of step 10 is nan"):
        loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == []


def test_a_worker_that_is_not_the_chief_writes_nothing(tmp_path):
    loop = toy.loop(tmp_path, is_chief=False)
    loop._update = lambda *_: [1.0, 9.0, 0.9, 1.0, 0.1]
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("bound", "accumulates"), [(0, False), (63, True), (64, False), (100, False)]
)
def test_a_batch_has_parts_only_when_a_device_cannot_hold_it(
    tmp_path, bound, accumulates
):
    hparams = toy.HPARAMS.replace(tokens_per_batch=64, max_tokens_per_device=bound)
    assert toy.loop(tmp_path, hparams).accumulates is accumulates


def test_a_state_saved_on_request_leaves_no_trace_in_what_is_averaged(tmp_path):
    settings = {"checkpoint_steps": 4, "train_steps": 10, "keep_checkpoints": 3}
    settings["average_last"] = 3
    loop = untrained(tmp_path, **settings)
    assert not loop.run(
        lambda step: signalled(6, signal.SIGTERM), toy.monitor(), toy.never
    )
    assert steps_saved(tmp_path) == [4, 6]
    loop = untrained(tmp_path, **settings)
    assert loop.restore() == 6
    assert loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == [4, 8, 10]


def test_a_state_saved_on_request_when_it_was_due_stays(tmp_path):
    loop = untrained(tmp_path, checkpoint_steps=3, train_steps=7)
    loop.run(lambda step: signalled(2, signal.SIGTERM), toy.monitor(), toy.never)
    loop = untrained(tmp_path, checkpoint_steps=3, train_steps=7)
    loop.restore()
    loop.run(toy.batches, toy.monitor(), toy.never)
    assert steps_saved(tmp_path) == [3, 6, 7]


def test_a_validation_that_was_killed_is_made_again(tmp_path):
    """The state of its step was saved, the validation was not reported."""
    settings = {"checkpoint_steps": 4, "eval_steps": 4, "train_steps": 10}

    class KilledError(Exception):
        pass

    def killed(step):
        raise KilledError

    def monitor(start):
        return Monitor(tmp_path, 10, start, io.StringIO())

    (tmp_path / "c").mkdir()
    loop = untrained(tmp_path / "c", **settings)
    with pytest.raises(KilledError):
        loop.run(toy.batches, monitor(0), killed)
    loop = untrained(tmp_path / "c", **settings)
    assert loop.restore() == 4
    told, asked = monitor(4), []

    def validate(step):
        asked.append(step)
        told.validated(step, 1.0, None)

    assert loop.run(toy.batches, told, validate)
    assert asked == [4, 8, 10]
    # What was reported is not made again.
    loop = untrained(tmp_path / "c", **settings)
    assert loop.restore() == 10
    assert loop.run(toy.batches, monitor(10), killed)


def test_the_number_of_skipped_updates_survives(tmp_path):
    loop = untrained(tmp_path, train_steps=3)
    bad = [float("nan"), 9.0, 0.9, 1.0, 0.1]
    loop._update = lambda *_: bad
    loop.run(toy.batches, toy.monitor(), toy.never)
    loop = untrained(tmp_path, train_steps=4)
    loop.restore()
    loop._update = lambda *_: bad
    told = io.StringIO()
    loop.run(toy.batches, Monitor(None, 4, 3, told), toy.never)
    assert "; 4 skipped so far" in told.getvalue()


@pytest.mark.parametrize(
    "meta", [{"unreported": [[1, 2]]}, {"unreported": 3}, {"skipped": "many"}]
)
def test_a_description_of_another_program_is_damage(tmp_path, meta):
    loop = untrained(tmp_path)
    weights, state = loop.weights, loop.state
    checkpoints.save(tmp_path, 3, weights, state)
    checkpoints.save(tmp_path, 6, weights, state, meta)
    said = []
    assert untrained(tmp_path).restore(said.append) == 3
    assert "its description is not of this program" in said[0]
