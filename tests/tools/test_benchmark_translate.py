"""Tests of the benchmark of start-up time and memory, with a small vocabulary."""

import json

import pytest
from benchmarks import start_up

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


def test_figures_are_in_the_table_before_ctrl_c(monkeypatch):
    usages = [start_up.Usage(5, 4), start_up.Usage(6, 5)]

    def usage_of(*_):
        if not usages:
            raise KeyboardInterrupt
        return usages.pop(0)

    monkeypatch.setattr(start_up, "usage_of", usage_of)
    table = {}
    with pytest.raises(KeyboardInterrupt):
        start_up.time_one_line({"tiny": ()}, 2, table)
    assert table["tiny"] == {"s": [6], "processor s": [5], "beyond the import": 0.25}


@pytest.mark.parametrize(
    ("flag", "words"),
    [("--sizes=huge", "huge"), ("--peers_python=/no/such", "No such file")],
)
def test_rejects_invalid_flags(flag, words):
    result = run_command.run(TOOL, flag)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
