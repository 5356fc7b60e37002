"""Tests of `stress_translate.py` with a short text."""

import json
import sys

import pytest

from tests import run_command


@pytest.mark.medium
def test_measures_time_and_memory(trained, tmp_path):
    """The exit status may be 1, because memory still grows during a short text."""
    result = run_command.run_alone(
        "tools/benchmarks/stress_translate.py",
        *("--model_dir", str(trained.model_dir), "--lines", "20000"),
        *("--work_dir", str(tmp_path), "--json"),
        python=sys.executable,  # A fork would have TensorFlow's memory.
    )
    row = json.loads(result.out)["tables"]["a long text"]["20,000 lines"]
    assert row["lines/s"] * row["s"] == pytest.approx(20_000)
    growth = row["MiB for all"] / row["MiB for a tenth"]
    assert row["memory ratio"] == pytest.approx(growth)
    assert row["MiB for a tenth"] > 100
    assert list(tmp_path.iterdir()) == []
