"""Tests of `stress_translate.py` with a short text."""

import json
import sys

import pytest
from benchmarks import stress_translate

from tests import run_command


def test_writes_the_same_short_lines_every_time(tmp_path):
    for name in ("a", "b"):
        stress_translate.write_lines(tmp_path / name, 50)
    lines = (tmp_path / "a").read_text().splitlines()
    assert (tmp_path / "b").read_text().splitlines() == lines
    assert {len(line.split()) for line in lines} == {2, 3, 4, 5, 6}


@pytest.mark.medium
def test_measures_time_and_memory(trained, tmp_path):
    """The exit status may be 1, because memory still grows during a short text."""
    result = run_command.run_alone(
        "tools/benchmarks/stress_translate.py",
        *("--model_dir", str(trained.model_dir), "--lines", "20000"),
        *("--work_dir", str(tmp_path), "--json"),
        python=sys.executable,  # The tool reads the memory of its process.
    )
    row = json.loads(result.out)["tables"]["a long text"]["20,000 lines"]
    assert row["lines/s"] * row["s"] == pytest.approx(20_000)
    growth = row["MiB at the end"] / row["MiB after a tenth"]
    assert row["memory ratio"] == pytest.approx(growth)
    assert row["MiB after a tenth"] > 100
    assert list(tmp_path.iterdir()) == []
