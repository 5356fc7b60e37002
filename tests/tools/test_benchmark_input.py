"""Tests of the input pipeline benchmark with a corpus of a thousand pairs."""

import json

import pytest

from tests import run_command


@pytest.mark.medium
def test_measures_all_stages(forked_python, tmp_path):
    result = run_command.run(
        *("tools/benchmarks/benchmark_input.py", "--pairs", "1000", "--batches", "3"),
        *("--hparams", "base,vocab_size=1000,tokens_per_batch=2000"),
        *("--work_dir", str(tmp_path), "--json"),
    )
    assert result.status == 0, result.err
    table = json.loads(result.out)["tables"]["input"]
    prepared, batches = table["vocabulary and shards"], table["batches"]
    assert prepared["pairs/s"] * prepared["s"] == pytest.approx(1000)
    assert prepared["s"] > batches["first batch (s)"] > 0
    tokens = batches["target tokens/s"] * batches["s"]
    assert tokens == pytest.approx(batches["target tokens"])
    assert 0 < tokens <= 3 * 2000
    alone = [row for name, row in table.items() if "SentencePiece" in name]
    again = [row for name, row in table.items() if name.startswith("shards, ")]
    assert len(alone) == len(again) == 1 and again[0]["s"] > alone[0]["s"] > 0
    for row in (prepared, *again, batches):
        assert row["peak memory (MiB)"] > 100
    assert 50 < batches["padding efficiency (%)"] <= 100
    assert list(tmp_path.iterdir()) == []
