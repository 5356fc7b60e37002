"""Tests of the input pipeline benchmark with a corpus of a thousand pairs."""

import json

import numpy as np
import pytest
from benchmarks import benchmark_input

from tests import run_command


def test_sentences_have_the_mean_lengths_of_wmt14(tmp_path):
    """WMT14 has 116 and 110 million words in 4.5 million pairs."""
    generator = np.random.default_rng(0)
    lengths = np.concatenate(list(benchmark_input.lengths_of(generator, 200_000)))
    np.testing.assert_allclose(lengths.mean(axis=0), [25.78, 24.44], rtol=0.01)
    assert lengths.min() >= 1
    # The lengths of both sides are correlated.
    assert np.corrcoef(lengths.T)[0, 1] > 0.8
    benchmark_input.write_corpus(tmp_path, 1000)
    for lang, mean in (("en", 25.78), ("de", 24.44)):
        lines = (tmp_path / f"train.{lang}").read_text().splitlines()
        assert len(lines) == 1000
        words = np.mean([len(line.split()) for line in lines])
        assert words == pytest.approx(mean, rel=0.1)


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
    assert min(row["peak memory (MiB)"] for row in table.values()) > 100
    assert 50 < batches["padding efficiency (%)"] <= 100
    assert list(tmp_path.iterdir()) == []
