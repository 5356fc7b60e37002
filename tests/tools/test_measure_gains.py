"""Tests of the gains of optimized implementations."""

import pytest
from benchmarks import measure_gains

from tests import run_command

TOOL = "tools/benchmarks/measure_gains.py"


def test_table_has_a_row_per_name_and_a_column_per_workload():
    rows = ["top_k\tbatch\t1.2345\t2.0\t2.469", "kv_cache\tbase\t1.0\t3.0\t3.0"]
    assert measure_gains.table(rows, ["base", "batch"]).splitlines() == [
        "| | base | batch |",
        "|---|---|---|",
        "| `top_k` |  | 1.23 |",
        "| `kv_cache` | 1.00 |  |",
    ]


def test_prints_the_gains_before_ctrl_c(tmp_path, monkeypatch, capsys):
    times = [[2.0, 3.0, 1.0, 1.0]]

    def measured(*_):
        if not times:
            raise KeyboardInterrupt
        return times.pop()

    monkeypatch.setattr(measure_gains, "_times", measured)
    flags = ["--works=tiny", "--names=top_k,kv_cache", "--output"]
    with pytest.raises(KeyboardInterrupt):
        measure_gains.main([*flags, str(tmp_path / "gains.tsv")])
    assert "| `top_k` | 1.50 |" in capsys.readouterr().out


@pytest.mark.medium
def test_does_not_measure_a_recorded_gain_again(forked_python, tmp_path):
    output = tmp_path / "gains.tsv"
    flags = ("--works=tiny", "--names=cross_entropy", "--rounds=1", "--output")
    result = run_command.run(TOOL, *flags, str(output))
    assert result.status == 0, result.err
    head, row = output.read_text().splitlines()
    assert tuple(head.split("\t")) == measure_gains.COLUMNS
    name, work, *numbers = row.split("\t")
    assert (name, work) == ("cross_entropy", "tiny")
    gain, seconds, without, start, start_without = map(float, numbers)
    assert gain == pytest.approx(without / seconds, rel=1e-2)
    assert min(start, start_without) > 0
    again = run_command.run(TOOL, *flags, str(output))
    assert again.out == measure_gains.table([row], ["tiny"]) + "\n"
    assert output.read_text().splitlines() == [head, row]
