"""Tests of the export benchmark."""

import json

import numpy as np
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
    speed, ratios = tables["speed of each batch"], tables["speed: ratios"]
    here, there = speed["in process"], speed["export"]
    # Three batches in two rounds.
    assert there["equal lines"] == "20 of 20"
    assert len(here["ms"]) == len(there["ms"]) == 6
    figure = "target tokens/s"
    ratio = np.median(there[figure]) / np.median(here[figure])
    assert ratios["export / in process"][figure] == pytest.approx(ratio)
