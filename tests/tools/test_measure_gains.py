"""The measurement of each optimized implementation's gain."""

import measure_gains
import pytest

from tests import run_command

TOOL = "tools/measure_gains.py"


def test_the_table_has_a_row_for_each_name_and_a_column_for_each_work():
    rows = ["top_k\tbatch\t1.2345\t2.0\t2.469", "kv_cache\tbase\t1.0\t3.0\t3.0"]
    assert measure_gains.table(rows, ["base", "batch"]).splitlines() == [
        "| name | base | batch |",
        "| --- | --- | --- |",
        "| `top_k` |  | 1.23 |",
        "| `kv_cache` | 1.00 |  |",
    ]


@pytest.mark.medium
def test_a_pair_is_measured_once_and_then_taken_from_the_file(tmp_path):
    output = tmp_path / "gains.tsv"
    flags = ("--works=tiny", "--names=cross_entropy", "--rounds=1", "--output")
    done = run_command.run(TOOL, *flags, str(output))
    assert done.status == 0, done.err
    head, row = output.read_text().splitlines()
    assert head == "name\twork\tgain\tseconds\tseconds_without"
    name, work, gain, seconds, without = row.split("\t")
    assert (name, work) == ("cross_entropy", "tiny")
    assert float(gain) == pytest.approx(float(without) / float(seconds), rel=1e-2)
    again = run_command.run(TOOL, *flags, str(output))
    assert again.out == measure_gains.table([row], ["tiny"]) + "\n"
    assert output.read_text().splitlines() == [head, row]
