"""The benchmark of a GPU: its counts, and a dry run on a CPU."""

import json
import signal

import pytest
from benchmarks.benchmark_gpu import DRY, Sizes, measurements
from benchmarks.in_turn import Contender, Process

from tests import run_command

TOOL = "tools/benchmarks/benchmark_gpu.py"


def test_tokens_operations_and_bytes_are_counted(tmp_path):
    real = measurements(Sizes(), str(tmp_path))
    updates = [each for each in real if each.task == "training.train"]
    assert [each.tokens for each in updates] == [3600, 12480, 24960] * 4
    # Six operations for each of big's 214.0M weights and pairs of tokens, 16 TFLOP.
    assert updates[1].operations == pytest.approx(6 * 214.0e6 * 12480, rel=0.02)
    # Four products forward, and eight backward; a number is read and written.
    assert real[0].operations == 12 * 2 * 8192**3
    assert real[2].moved == 2 * 2**31
    tasks = {each.task for each in measurements(DRY, str(tmp_path))}
    assert tasks == {each.task for each in real}


def test_a_worker_sees_the_gpus_that_it_is_given(tmp_path):
    program = "import os; input(); print(f'[{os.environ[\"CUDA_VISIBLE_DEVICES\"]}]')"
    for gpus in ("-1", "3"):
        contender = Contender(gpus, ["python3", "-c", program], gpus=gpus)
        with Process(contender, tmp_path) as process:
            assert process.ask(0) == [int(gpus)]


@pytest.mark.medium
def test_at_the_time_limit_what_was_measured_is_printed(monkeypatch):
    """The alarm comes after twelve seconds instead of a minute."""
    alarm = signal.alarm
    monkeypatch.setattr(signal, "alarm", lambda seconds: alarm(12 if seconds else 0))
    done = run_command.run(TOOL, "--minutes", "1", "--json")
    assert done.status == 0, done.err
    assert "1 minutes are over; the figures so far:" in done.err
    result = json.loads(done.out)
    assert result["machine"]["gpu"] is None
    for row in result["tables"]["on a GPU"].values():
        assert row["ms"][0] > 0


@pytest.mark.slow
def test_a_dry_run_measures_everything(tmp_path):
    done = run_command.run(TOOL, "--json")
    assert done.status == 0, done.err
    table = json.loads(done.out)["tables"]["on a GPU"]
    planned = {each.name: each for each in measurements(DRY, str(tmp_path))}
    assert list(table) == list(planned)
    for name, row in table.items():
        each, (ms,) = planned[name], row["ms"]
        assert row.get("target tokens/s", [0])[0] * ms / 1000 == pytest.approx(
            each.tokens
        )
        assert row.get("GB/s", [0])[0] * ms * 1e6 == pytest.approx(each.moved)
