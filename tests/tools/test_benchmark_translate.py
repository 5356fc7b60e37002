"""Tests of the benchmark of start-up time and memory, with a small vocabulary."""

import json

import pytest

from tests import run_command

TOOL = "tools/benchmarks/benchmark_translate.py"


@pytest.mark.medium
def test_compares_one_line_with_the_import():
    flags = ["--sizes=tiny", "--vocab_size=400", "--rounds=1", "--json"]
    result = run_command.run_alone(TOOL, *flags)
    assert result.status == 0, result.err
    (table,) = json.loads(result.out)["tables"].values()
    imported, tiny = table["import tensorflow"], table["tiny"]
    assert "beyond the import" not in imported
    (before,), (after,) = imported["processor s"], tiny["processor s"]
    assert tiny["beyond the import"] == pytest.approx(after / before - 1)
