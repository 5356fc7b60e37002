"""The very long text, cut short."""

import json

import pytest
from benchmarks import stress_translate

from tests import run_command


def test_lines_are_short_and_always_the_same(tmp_path):
    for name in ("a", "b"):
        stress_translate.write_lines(tmp_path / name, 50)
    lines = (tmp_path / "a").read_text().splitlines()
    assert (tmp_path / "b").read_text().splitlines() == lines
    assert {len(line.split()) for line in lines} == {2, 3, 4, 5, 6}


@pytest.mark.medium
def test_time_and_memory_are_measured(trained, tmp_path):
    """With few lines memory still grows, so that the exit status may be 1."""
    done = run_command.run_alone(
        "tools/benchmarks/stress_translate.py",
        *("--model_dir", str(trained.model_dir), "--lines", "60000"),
        *("--work_dir", str(tmp_path), "--json"),
    )
    row = json.loads(done.out)["tables"]["a long text"]["60,000 lines"]
    assert row["lines/s"] * row["s"] == pytest.approx(60_000)
    growth = row["MiB at the end"] / row["MiB after a tenth"]
    assert row["times the memory"] == pytest.approx(growth)
    assert row["MiB after a tenth"] > 100
    assert list(tmp_path.iterdir()) == []
