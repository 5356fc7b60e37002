"""Tests of the gains of optimized implementations."""

import pytest
from benchmarks import measure_gains

from tests import run_command

TOOL = "tools/benchmarks/measure_gains.py"


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
