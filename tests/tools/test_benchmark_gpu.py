"""What a GPU is measured by: the arithmetic by hand, and a dry run on a CPU."""

import json
import signal

import pytest
from benchmark_gpu import DRY, Measurement, Sizes, measurements, row, text_of
from benchmarks.in_turn import Contender, Process, own
from benchmarks.machine import machine

from tests import run_command

TOOL = "tools/benchmark_gpu.py"
H100 = "NVIDIA H100 80GB HBM3"


def answers(*seconds):
    return [{"seconds": each, "start_seconds": 9.0} for each in seconds]


def test_the_median_turn_counts_for_each_of_its_steps():
    """Four steps in two seconds: half a second for 989.5 / 4 TFLOP is a half of it."""
    work = Measurement("w", "t", {}, 4, tokens=600, operations=989.5e12 / 4, moved=10)
    found = row(work, answers(2.0, 9.0, 1.0), H100)
    assert found == {
        "seconds": 0.5,
        "tokens_per_second": 1200.0,
        "operations_per_second": 989.5e12 / 2,
        "bytes_per_second": 20.0,
        "mfu": 0.5,
        "start_seconds": 9.0,
    }
    assert row(work, answers(2.0), None)["mfu"] is None
    assert row(work, answers(2.0), "Some GPU")["mfu"] is None
    # What is asked for by name is one step.
    assert row(work._replace(request="a batch"), answers(2.0), None)["seconds"] == 2.0


def test_what_is_measured_is_what_the_page_asks_for(tmp_path):
    real = measurements(Sizes(), str(tmp_path))
    updates = [each for each in real if each.task == "training.train"]
    assert [each.tokens for each in updates[:3]] == [3600, 12480, 24960]
    cases = [(each.given["precision"], each.given["xla"]) for each in updates]
    assert cases == [
        *[("bfloat16", True)] * 3,
        *[("bfloat16", False)] * 3,
        *[("float32", True)] * 3,
        *[("float32", False)] * 3,
    ]
    # Six operations for each of big's 214.0M weights and pairs of tokens, 16 TFLOP.
    assert updates[1].operations == pytest.approx(6 * 214.0e6 * 12480, rel=0.02)
    # Four products forward, and eight backward; a number is read and written.
    assert real[0].operations == 12 * 2 * 8192**3
    assert real[2].moved == 2 * 2**31
    tasks = {each.task for each in measurements(DRY, str(tmp_path))}
    assert tasks == {each.task for each in real}


def test_what_was_not_reached_is_said_to_be_so():
    told = text_of(
        {
            "machine": machine(),
            "gpu": H100,
            "rows": {
                "a": row(Measurement("a", "t", {}, 1, 300), answers(0.5), H100),
                "b": None,
            },
            "killed": "1 of 1 identical",
        }
    )
    assert "| a | 500.00 | 600 |  |  |  | 9 |" in told
    assert "| b | not measured | | | | | |" in told
    assert H100 in told
    assert "killed and resumed: 1 of 1 identical" in told


def test_a_worker_sees_the_gpus_that_it_is_given(tmp_path, monkeypatch):
    program = "import os; input(); print(f'[{os.environ[\"CUDA_VISIBLE_DEVICES\"]}]')"
    assert own("x", "training.train", {}, gpus="3").gpus == "3"
    for gpus in ("-1", "3"):
        contender = Contender(gpus, ["python3", "-c", program], gpus=gpus)
        with Process(contender, tmp_path) as process:
            assert process.ask(0) == [int(gpus)]


@pytest.mark.medium
def test_when_the_time_is_over_what_was_measured_is_printed(monkeypatch):
    """The alarm comes after five seconds instead of a minute: in the first thing."""
    alarm = signal.alarm
    monkeypatch.setattr(signal, "alarm", lambda seconds: alarm(5 if seconds else 0))
    done = run_command.run(TOOL, "--minutes", "1", "--json")
    assert done.status == 0, done.err
    assert "1 minutes are over; what was measured until then:" in done.err
    result = json.loads(done.out)
    assert set(result["rows"].values()) == {None}
    assert result["killed"] == "the time was over"


@pytest.mark.slow
def test_a_dry_run_measures_everything():
    done = run_command.run(TOOL, "--json")
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert result["gpu"] is None
    assert result["killed"] == "1 of 1 identical"
    assert len(result["rows"]) == 9
    for name, each in result["rows"].items():
        assert each["seconds"] > 0
        assert each["mfu"] is None
        assert (each["tokens_per_second"] > 0) == ("update" in name or "beam" in name)
        assert (each["bytes_per_second"] > 0) == (name == "copy")
