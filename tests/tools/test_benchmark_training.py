"""Tests of the training benchmark: operations counted by hand, and a toy run."""

import json

import pytest
from benchmarks.work import SQUARE, Work, flops, matmuls_of, work_of
from model_costs import training_flops

from t2t_repro import hparams
from tests import run_command

TOOL = "tools/benchmarks/benchmark_training.py"
SMALL = Work("tiny", 2, 3, d_model=4, d_ff=8, num_heads=2, num_layers=1, vocab_size=10)


def test_counts_the_operations_of_a_step():
    """Encoder and decoder have one layer, 6 rows of 4 channels and 2 heads of 2."""
    counts = {
        (6, 4, 4): 12,  # Three attention layers with four projections each.
        (3, 2, 3): 3,  # Queries by keys, for 2 sentences x 2 heads.
        (3, 3, 2): 3,
        (6, 4, 8): 2,
        (6, 8, 4): 2,
        (6, 4, 10): 1,
    }
    matmuls = matmuls_of(SMALL)
    assert {(m.rows, m.inner, m.columns): m.count for m in matmuls} == counts
    assert flops(matmuls) == 3 * 2 * (12 * 96 + 2 * 3 * 4 * 18 + 2 * 2 * 192 + 240)
    # The same count as in the paper's table 2.
    expected = 32 * training_flops(hparams.load("base"), 8000, 32, 32)
    matmuls = matmuls_of(work_of("base", 32, 32, 8000))
    assert flops(matmuls) == pytest.approx(expected, rel=1e-12)


@pytest.mark.medium
def test_figures_of_a_toy_run_are_consistent(forked_python):
    process = run_command.run(
        *(TOOL, "--json", "--sizes=tiny", "--vocab_size=100", "--rounds=1"),
        *("--only=t2t_repro,products,square,torch", "--precision=float32"),
        *("--steps=3", "--batch_size=2", "--length=8"),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert result["versions"] == ["PyTorch is skipped: --torch_python is not given"]
    table, ratios = result["tables"].values()
    ours, matmuls, square = table.values()
    # A step has sixteen tokens.
    for row in (ours, matmuls):
        assert row["ms"][0] / 1000 * row["target tokens/s"][0] == pytest.approx(16)
    assert square["GFLOP/s"][0] * square["ms"][0] / 1000 == pytest.approx(
        flops(SQUARE) / 1e9
    )
    ratio = ratios["t2t_repro float32 / matmuls only float32"]
    mine, other = (row["target tokens/s"][0] for row in (ours, matmuls))
    assert ratio["target tokens/s"] == pytest.approx(mine / other)
