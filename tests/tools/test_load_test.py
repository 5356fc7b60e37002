"""Tests of the load test against a server."""

import json

import pytest
from serving_harness.batching import BatchingParameters
from serving_harness.running import serving

from tests import run_command, tiny
from tests.tools.echo import export_echo

LINES = [source for source, _ in tiny.pairs("test")]


@pytest.mark.medium
def test_measures_a_server(tmp_path):
    export_echo(tmp_path / "e" / "1")
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    with serving(tmp_path / "e", "model", BatchingParameters(64, 1000)) as running:
        result = run_command.run(
            *("tools/benchmarks/load_test.py", "--json", "--model", "model"),
            *("--port", str(running.rest_port), "--protocol", "rest"),
            *("--source_file", str(source), "--clients", "4"),
            *("--requests", "24", "--batch_size", "3"),
        )
    assert result.status == 0, result.err
    (row,) = json.loads(result.out)["tables"]["4 clients"].values()
    assert row["requests"] == 24
    assert 24 <= row["sentences"] <= 72
    assert row["sentences/s"] * row["s"] == pytest.approx(row["sentences"])
    times = [row[f"p{percent} (ms)"] for percent in (50, 90, 99, 100)]
    assert times == sorted(times)
    assert 0 < times[-1] <= row["s"] * 1000 + 10
