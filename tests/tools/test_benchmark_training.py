"""Tests of the training benchmark: operations counted by hand, and a toy run."""

import json
from argparse import Namespace

import pytest
from benchmarks import benchmark_training
from benchmarks.work import SQUARE, Matmul, Work, flops, matmuls_of, work_of
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
    assert [m.copies for m in matmuls] == [1, 4, 4, 1, 1, 1]
    assert flops(matmuls) == 3 * 2 * (12 * 96 + 2 * 3 * 4 * 18 + 2 * 2 * 192 + 240)
    assert Matmul(count=5, copies=7, rows=2, inner=3, columns=4).flops == 5040
    assert flops(SQUARE) == 6 * 2048**3
    # The same count as in the paper's table 2.
    expected = 32 * training_flops(hparams.load("base"), 8000, 32, 32)
    matmuls = matmuls_of(work_of("base", 32, 32, 8000))
    assert flops(matmuls) == pytest.approx(expected, rel=1e-12)


def test_compares_only_programs_of_equal_precision():
    table = dict.fromkeys(
        ["t2t_repro float32", "PyTorch float32", "t2t_repro bfloat16", "PyTorch bf"]
    )
    assert benchmark_training.pairs(table) == [("t2t_repro float32", "PyTorch float32")]


def test_times_the_program_without_each_given_optimization():
    flags = {"only": ["t2t_repro", "products"], "precision": ["float32"]}
    args = Namespace(**flags, without=["top_k"])
    contenders = benchmark_training.contenders(SMALL, args)
    assert [each.name for each in contenders] == [
        "t2t_repro float32",
        "t2t_repro float32 without top_k",
        "matmuls only float32",
    ]
    whole, without, _ = (json.loads(each.command[-1]) for each in contenders)
    assert without == whole | {"without": ["top_k"]}


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--without=top_q", "--without: must be one of shared_trace, "),
        ("--only=fairseq", "--only: must be one of t2t_repro, products"),
        ("--plot=x.svg", "--plot requires --lengths: it draws speed against length"),
        ("--lengths=16,x", "--lengths: must be a whole number of at least 2, not 'x'"),
    ],
)
def test_rejects_invalid_flags(flag, words):
    result = run_command.run(TOOL, flag)
    assert run_command.is_one_clear_line(result)
    assert words in result.err


@pytest.mark.medium
def test_figures_of_a_toy_run_are_consistent(forked_python, tmp_path):
    plot = tmp_path / "curve.svg"
    process = run_command.run(
        *(TOOL, "--json", "--sizes=tiny", "--vocab_size=100", "--rounds=1"),
        *("--only=t2t_repro,products,square,torch", "--precision=float32"),
        *("--steps=3", "--lengths=8", "--curve_tokens=16", "--start_up=tiny"),
        *("--plot", str(plot)),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert result["versions"] == ["PyTorch is skipped: --torch_python is not given"]
    (title, table), (_, ratios), start_up = result["tables"].items()
    assert title.startswith("tiny, 2 x 8 tokens")
    ours, matmuls, square = table.values()
    for row in table.values():
        assert len(row["ms"]) == len(row["target tokens/s"]) == 1
        assert row["peak memory (MiB)"] > 0
        assert row["first step (s)"] > row["ms"][0] / 1000
    # A step has sixteen tokens.
    for row in (ours, matmuls):
        assert row["ms"][0] / 1000 * row["target tokens/s"][0] == pytest.approx(16)
    assert square["GFLOP/s"][0] * square["ms"][0] / 1000 == pytest.approx(
        flops(SQUARE) / 1e9
    )
    assert len(ratios) == 2
    ratio = ratios["t2t_repro float32 / matmuls only float32"]
    mine, other = (row["target tokens/s"][0] for row in (ours, matmuls))
    assert ratio["target tokens/s"] == pytest.approx(mine / other)
    assert min(start_up[1]["tiny"]["s"]) > 1
    assert plot.read_text().startswith("<?xml")
