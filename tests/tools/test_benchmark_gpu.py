"""Tests of the GPU benchmark: operation counts, and a dry run on a CPU."""

import json
import signal

import pytest
from benchmarks import report
from benchmarks.benchmark_gpu import DRY, Sizes, measurements

from tests import run_command

TOOL = "tools/benchmarks/benchmark_gpu.py"


def test_counts_tokens_operations_and_bytes(tmp_path):
    real = measurements(Sizes(), str(tmp_path))
    named = {each.name: each for each in real}
    assert len(named) == len(real)
    # A row of 256 has room for eight pairs of 30 tokens.
    pairs = {"48 x 256": 48 * 8, "96 x 256": 96 * 8, "416 x 30": 416, "120 x 30": 120}
    steps = [each for each in real if each.task == "training.train"]
    for each in steps:
        (size,) = [size for size in pairs if f" {size}" in each.name]
        assert each.tokens == 30 * pairs[size]
    # Six operations per weight (big has 214.0M) and pair of tokens: 16 TFLOP.
    step = named["step of big, 416 x 30"]
    assert step.operations == pytest.approx(6 * 214.0e6 * 12480, rel=0.02)
    tasks = {each.task for each in measurements(DRY, str(tmp_path))}
    assert tasks == {each.task for each in real}


@pytest.mark.medium
def test_prints_the_figures_so_far_at_the_time_limit(
    forked_python, monkeypatch, tmp_path
):
    # Shortens the time limit to a second after a figure.
    add_turn = report.add_turn

    def add_figure(*arguments, **figures):
        add_turn(*arguments, **figures)
        signal.alarm(1)

    monkeypatch.setattr(report, "add_turn", add_figure)
    result = run_command.run(TOOL, "--minutes", "1", "--json")
    assert result.status == 0, result.err
    assert "time limit of 1 minutes reached; the figures so far:" in result.err
    figures = json.loads(result.out)
    assert figures["machine"]["gpu"] is None
    rows = figures["tables"]["on a GPU"].values()
    assert 0 < len(rows) < len(measurements(DRY, str(tmp_path)))
    for row in rows:
        assert row["ms"][0] > 0
