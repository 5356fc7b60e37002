"""Tests of the progress reports: averages, speed, remaining time, logs."""

import io
from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_repro.training import monitor as module
from t2t_repro.training.monitor import (
    LOG_FILE,
    LOG_STEPS,
    VALIDATION_FILE,
    Monitor,
)
from t2t_repro.training.step import StepResult


@pytest.fixture
def clock(monkeypatch):
    """A fake clock that only the test advances."""
    clock = SimpleNamespace(now=1000.0)
    fake = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(module, "time", fake)
    return clock


def result(loss, tokens=1000.0):
    return StepResult(loss, tokens, 0.8, 2.5, 7e-4)


def run_fifty(directory, stream, clock, start=0):
    """Reports fifty steps in 100 s, with a pause of an hour; returns the monitor."""
    monitor = Monitor(directory, train_steps=200, start_step=start, stream=stream)
    for number in range(LOG_STEPS):
        clock.now += 2
        monitor.record_step(start + number + 1, result(loss=4.0 if number % 2 else 2.0))
        if number == 20:
            with monitor.pause():
                clock.now += 3600
    return monitor


def test_reports_means_speed_and_remaining_time(tmp_path, clock):
    stream = io.StringIO()
    run_fifty(tmp_path, stream, clock)
    first, line = stream.getvalue().splitlines()
    # 15 steps take 30 s; 185 steps remain.
    assert first.startswith("step 15/200  2.0 s per step so far, with start-up; ")
    # 50 * 1000 tokens in 100 s; 150 remaining steps of 2 s take 5 minutes.
    for text in (
        "step 50/200",
        "loss 3.0000",
        "rate 7.00e-04",
        "500 target tokens/s",
        "80.0% tokens",
        "norm 2.50",
        "ETA 0:05:00",
    ):
        assert text in line


def test_reports_the_epoch_and_at_most_the_time_until_the_limit(clock):
    stream = io.StringIO()
    monitor = Monitor(None, 200, 0, stream, steps_per_epoch=40)
    monitor.ends_at = clock.now + 100 + 60
    for step in range(1, LOG_STEPS + 1):
        clock.now += 2
        monitor.record_step(step, result(loss=1.0))
    # 150 steps of 2 s would take 5 minutes.
    assert stream.getvalue().endswith("ETA 0:01:00  epoch 1.25\n")


def test_remaining_time_depends_only_on_steps_of_this_run(tmp_path, clock):
    stream = io.StringIO()
    run_fifty(tmp_path, stream, clock, start=100)
    assert "step 150/200" in stream.getvalue()
    assert "ETA 0:01:40" in stream.getvalue()


def test_always_reports_the_last_step(clock):
    stream = io.StringIO()
    monitor = Monitor(None, train_steps=3, start_step=0, stream=stream)
    for step in (1, 2, 3):
        clock.now += 1
        monitor.record_step(step, result(loss=float(step)))
    (line,) = stream.getvalue().splitlines()
    assert "step 3/3  loss 2.0000" in line
    assert "ETA 0:00:00" in line


def test_a_second_run_continues_the_log(tmp_path, clock):
    run_fifty(tmp_path, io.StringIO(), clock)
    run_fifty(tmp_path, io.StringIO(), clock, start=50)
    lines = (tmp_path / LOG_FILE).read_text(encoding="utf-8").splitlines()
    header, first, second = (line.split("\t") for line in lines)
    assert len(header) == len(first) == len(second)
    row = dict(zip(header, first, strict=True))
    assert (row["step"], second[0]) == ("50", "100")
    assert float(row["loss"]) == 3
    assert float(row["learning_rate"]) == pytest.approx(7e-4)
    assert float(row["target_tokens_per_second"]) == 500
    assert float(row["token_share"]) == 0.8
    assert float(row["norm"]) == 2.5


def test_writes_scalars_to_tensorboard(tmp_path, clock):
    run_fifty(tmp_path, io.StringIO(), clock).scalars(50, {"val_loss": 1.5})
    (path,) = (tmp_path / "tensorboard").iterdir()
    events = {}
    for record in tf.data.TFRecordDataset([str(path)]):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            events[value.tag, event.step] = float(tf.make_ndarray(value.tensor))
    assert events["loss", 50] == 3
    assert events["val_loss", 50] == 1.5
    assert events["target_tokens_per_second", 50] == 500
    assert events["learning_rate", 50] == pytest.approx(7e-4)


def test_a_worker_writes_no_files(tmp_path, monkeypatch, clock):
    monkeypatch.chdir(tmp_path)
    run_fifty(None, io.StringIO(), clock).scalars(50, {"val_loss": 1.5})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.6, "0:01:00"), (3599, "0:59:59"), (360_000, "100:00:00")],
)
def test_formats_durations(seconds, text):
    assert module._clock(seconds) == text


def test_a_resumed_monitor_includes_unreported_results(tmp_path, clock):
    first = Monitor(tmp_path, 100, 0, io.StringIO())
    for step in range(1, 31):
        first.record_step(step, result(loss=step))
    stream = io.StringIO()
    second = Monitor(tmp_path, 100, 30, stream, first.unreported())
    for step in range(31, 51):
        clock.now += 1
        second.record_step(step, result(loss=step))
    # The mean of 1 to 50; 20 steps of 1,000 tokens take 20 s.
    assert "step 50/100  loss 25.5000" in stream.getvalue()
    assert "  1,000 target tokens/s" in stream.getvalue()
    assert second.unreported() == []


def test_validation_log_names_the_score(tmp_path, clock):
    Monitor(tmp_path, 100, 0, io.StringIO(), figure="f1").record_validation(
        20, 2.5, 61.5
    )
    text = (tmp_path / VALIDATION_FILE).read_text(encoding="utf-8")
    assert text == "step\tloss\tgreedy_f1\n20\t2.500000\t61.500000\n"


def test_records_validations(tmp_path, clock):
    monitor = Monitor(tmp_path, 100, 0, io.StringIO())
    monitor.record_validation(20, 2.5, None)
    monitor.record_validation(40, 1.5, 33.25)
    assert [monitor.was_validated(step) for step in (20, 30, 40)] == [True, False, True]
    text = (tmp_path / VALIDATION_FILE).read_text(encoding="utf-8")
    assert text == (
        "step\tloss\tgreedy_bleu\n20\t2.500000\t\n40\t1.500000\t33.250000\n"
    )
    # Resuming from step 30 removes the validation of step 40.
    again = Monitor(tmp_path, 100, 30, io.StringIO())
    assert [again.was_validated(step) for step in (20, 40)] == [True, False]
    assert Monitor(None, 100, 30, io.StringIO()).was_validated(40)
