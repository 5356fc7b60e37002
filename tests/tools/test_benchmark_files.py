"""Test of the benchmark of file formats with a thousand units."""

import json

import pytest

from tests import run_command


@pytest.mark.medium
def test_measures_reading_and_cleaning(tmp_path):
    result = run_command.run(
        *("tools/benchmarks/benchmark_files.py", "--units", "1000"),
        *("--work_dir", str(tmp_path), "--json"),
    )
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    assert set(tables["TMX"]) == {"iterparse", "t2t_repro"}
    assert all(len(row["us per unit"]) == 5 for row in tables["TMX"].values())
    assert min(min(row["us per unit"]) for row in tables["TMX"].values()) > 0
    row = tables["clean"]["t2t_repro"]
    assert row["pairs/s"] * row["s"] == pytest.approx(1000)
    assert list(tmp_path.iterdir()) == []
