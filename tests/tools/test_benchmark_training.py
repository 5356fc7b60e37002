"""Test of the training benchmark with a toy run."""

import json

import pytest
from model_costs import training_flops

from t2t_repro import hparams
from tests import run_command

TOOL = "tools/benchmarks/benchmark_training.py"


@pytest.mark.medium
def test_figures_of_a_toy_run_are_consistent(forked_python):
    process = run_command.run(
        *(TOOL, "--json", "--sizes=tiny", "--vocab_size=100", "--rounds=1"),
        *("--only=t2t_repro,torch", "--precision=float32"),
        *("--steps=3", "--batch_size=2", "--length=8"),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert result["versions"] == ["PyTorch is skipped: --torch_python is not given"]
    table, ratios = result["tables"].values()
    row = table["t2t_repro float32"]
    seconds = row["ms"][0] / 1000
    # Two pairs of eight tokens.
    assert seconds * row["target tokens/s"][0] == pytest.approx(16)
    operations = 2 * training_flops(hparams.load("tiny"), 100, 8, 8)
    assert seconds * row["GFLOP/s"][0] * 1e9 == pytest.approx(operations)
    assert ratios == {}
