"""Tests of the export benchmark."""

import json

import pytest

from tests import run_command, tiny

TOOL = "tools/benchmarks/benchmark_export.py"


@pytest.mark.medium
def test_export_and_model_translate_the_same_lines(forked_python, trained, tmp_path):
    source = tmp_path / "source.txt"
    lines = [source for source, _ in tiny.pairs("train")][:10]
    source.write_text("".join(f"{line}\n" for line in lines))
    hparams = f"{trained.hparams},vocab_divisor=512"
    vocabulary = str(trained.model_dir / "vocab.model")
    result = run_command.run(
        *(TOOL, "--hparams", hparams, "--vocab_file", vocabulary, "--json"),
        *("--source_file", str(source), "--batch_size", "4", "--rounds", "2"),
    )
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    export = tables["export"]["export"]
    # A weight takes four bytes, and the graph takes space too.
    assert export["MiB on disk"] * 2**20 > 4 * export["parameters"]
    assert export["peak memory (MiB)"] >= export["MiB after first batch"] > 0
    assert min(export["s to export"], export["s to load"]) > 0
    here, there = tables["speed"]["in process"], tables["speed"]["export"]
    assert there["equal lines"] == "10 of 10"
    tokens = [
        speed * seconds
        for row in (here, there)
        for speed, seconds in zip(row["target tokens/s"], row["s"], strict=True)
    ]
    assert tokens == pytest.approx([tokens[0]] * 4)
    assert tokens[0] >= 10
    # The median over six batches is close to the ratio of the total times.
    ratio = 100 * sum(here["s"]) / sum(there["s"])
    assert there["% of in-process speed"] == pytest.approx(ratio, rel=0.7)
