"""The very long text, cut short."""

import json

import pytest
import stress_translate

from tests import run_command


def test_lines_are_short_and_always_the_same(tmp_path):
    for name in ("a", "b"):
        stress_translate.write_lines(tmp_path / name, 50)
    lines = (tmp_path / "a").read_text().splitlines()
    assert (tmp_path / "b").read_text().splitlines() == lines
    assert len(lines) == 50
    assert {len(line.split()) for line in lines} == {2, 3, 4, 5, 6}


@pytest.mark.medium
def test_a_kill_loses_nothing(trained, tmp_path):
    """Memory is looked at, but grows in so few lines."""
    done = run_command.run_alone(
        "tools/stress_translate.py",
        *("--model_dir", str(trained.model_dir), "--lines", "60000"),
        *("--work_dir", str(tmp_path), "--json"),
    )
    found = json.loads(done.out)
    assert found["same"] is True
    assert 30_000 <= found["killed_after"] < 60_000
    assert found["memory_after_a_tenth"] > 1e8
    assert list(tmp_path.iterdir()) == []
