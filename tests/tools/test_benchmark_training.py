"""The timing of a training step: its arithmetic by hand, and a toy run."""

import json
from argparse import Namespace
from dataclasses import asdict, replace

import benchmark_training
import pytest
from benchmarks.start_up import StartUp
from benchmarks.training_report import draw, series, summary, text_of
from benchmarks.work import SQUARE, Product, Work, flops, products_of, work_of
from model_costs import training_flops

from t2t_repro import hparams
from t2t_repro.system.errors import UserError
from tests import run_command

TOOL = "tools/benchmark_training.py"
SMALL = Work("tiny", 2, 3, d_model=4, d_ff=8, num_heads=2, num_layers=1, vocab_size=10)
TOY = ("--sizes=tiny", "--batch_size=4", "--length=8", "--vocab_size=100")
ONCE = ("--rounds=1", "--steps=1", "--precision=float32")


def test_a_steps_products_are_counted_by_hand():
    """One layer each, 6 rows of 4 channels, 2 heads of 2 channels."""
    multiplications = {
        (6, 4, 4): 12,  # Three attentions, four projections each.
        (3, 2, 3): 3,  # Queries by keys, for 2 sentences x 2 heads.
        (3, 3, 2): 3,
        (6, 4, 8): 2,
        (6, 8, 4): 2,
        (6, 4, 10): 1,
    }
    found = products_of(SMALL)
    assert {(p.rows, p.inner, p.columns): p.count for p in found} == multiplications
    assert [p.copies for p in found] == [1, 4, 4, 1, 1, 1]
    forward = 12 * 96 + 2 * 3 * 4 * 18 + 2 * 2 * 192 + 240
    assert flops(found) == 3 * 2 * forward


def test_the_count_is_that_of_the_papers_table():
    work = work_of("base", 32, 32, 8000)
    expected = 32 * training_flops(hparams.load("base"), 8000, 32, 32)
    assert flops(products_of(work)) == pytest.approx(expected, rel=1e-12)


def test_a_product_costs_two_operations_in_three_passes():
    assert Product(count=5, copies=7, rows=2, inner=3, columns=4).flops == 5040
    assert flops(SQUARE) == 6 * 2048**3


def times(*seconds, start=9.0, memory=5_000_000):
    return [
        {"seconds": each, "start_seconds": start, "memory": memory} for each in seconds
    ]


FOUND = {
    "t2t_repro float32": times(3.0, 1.0, 2.0),
    "t2t_repro bfloat16": times(4.0),
    "PyTorch float32, paper's dropout": times(3.0),
    "PyTorch bfloat16": times(2.0),
}


def test_the_median_round_counts_and_precisions_are_not_mixed():
    found = summary(SMALL, FOUND)
    speeds = {n: row["tokens_per_second"] for n, row in found["contenders"].items()}
    assert speeds["t2t_repro float32"] == 6 / 2.0
    assert found["ratios"] == {
        "t2t_repro float32 / PyTorch float32, paper's dropout": 1.5,
        "t2t_repro bfloat16 / PyTorch bfloat16": 0.5,
    }


def test_a_square_product_is_told_as_the_step_it_would_be():
    seconds = flops(SQUARE) / 1e9  # One GFLOP/s.
    found = summary(SMALL, {"a square product float32": times(seconds)})
    row = found["contenders"]["a square product float32"]
    assert row["gigaflops_per_second"] == pytest.approx(1.0)
    assert row["tokens_per_second"] == pytest.approx(6e9 / flops(products_of(SMALL)))


def whole(**parts):
    machine = {"cpus": 2, "processor": "P", "load_average": 0.0}
    empty = {"peers": {}, "cases": [], "start_up": {}}
    return {"machine": machine, **empty, **parts}


def test_the_text_tells_everything():
    told = text_of(
        whole(
            peers={"PyTorch": "left out: --torch_python names no interpreter"},
            cases=[summary(SMALL, FOUND)],
            start_up={"base": [15.0, 13.0, 14.0]},
        )
    )
    assert "PyTorch: left out: --torch_python names no interpreter" in told
    assert "tiny: 2 x 3 tokens, vocabulary 10; 0.0 GFLOP a step in products" in told
    row = next(x for x in told.splitlines() if x.startswith("t2t_repro float32 "))
    assert row.split()[2:] == ["3", "0", "5", "9.0"]
    assert "  base: 14.0 s (15.0, 13.0, 14.0)" in told


def test_several_lengths_are_arranged_and_drawn(tmp_path):
    names = ("t2t_repro float32", "products of the step float32")
    found = {names[0]: times(0.5), names[1]: times(0.25)}
    cases = [summary(replace(SMALL, length=length), found) for length in (4, 8)]
    assert series(cases) == {
        "tiny": {names[0]: [(4, 16.0), (8, 32.0)], names[1]: [(4, 32.0), (8, 64.0)]}
    }
    assert cases[0]["ratios"] == {f"{names[0]} / {names[1]}": 0.5}
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.svg"
    draw(cases, path)
    drawn = path.read_text()
    for words in ("tokens of a sentence", names[1], ">tiny<"):
        assert words in drawn


def named(only, **given):
    flags = {"t2t_python": None, "opennmt_python": None, "torch_python": None}
    precision = ["float32", "bfloat16"]
    own = {"precision": precision, "only": only, "without": []}
    return Namespace(**{**own, **flags, **given})


def test_peers_without_an_interpreter_are_left_out():
    found = benchmark_training.contenders(SMALL, named(benchmark_training.PROGRAMS))
    programs = ("t2t_repro", "products of the step", "a square product")
    assert [each.name for each in found] == [
        f"{program} {precision}"
        for program in programs
        for precision in ("float32", "bfloat16")
    ]


def test_a_contender_is_given_its_own_precision_and_dropout():
    args = named(["torch", "opennmt"], torch_python="a", opennmt_python="b")
    found = benchmark_training.contenders(SMALL, args)
    assert [each.name for each in found] == [
        "PyTorch float32",
        "PyTorch float32, paper's dropout",
        "PyTorch bfloat16",
        "PyTorch bfloat16, paper's dropout",
        "OpenNMT-tf float32",
    ]
    python, script, work = found[3].command
    assert (python, script.rpartition("/")[2]) == ("a", "torch_training.py")
    changed = replace(SMALL, precision="bfloat16", paper_dropout=True)
    assert json.loads(work) == asdict(changed)


def test_the_program_is_timed_without_each_optimization_that_is_named():
    args = named(["t2t_repro", "products"], without=["top_k"], precision=["float32"])
    found = benchmark_training.contenders(SMALL, args)
    assert [each.name for each in found] == [
        "t2t_repro float32",
        "t2t_repro float32 without top_k",
        "products of the step float32",
    ]
    whole, without, _ = (json.loads(each.command[-1]) for each in found)
    assert without == whole | {"without": ["top_k"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--without=top_q"], "--without: must be of flat_matmul, "),
        (["--only=fairseq"], "--only: must be of t2t_repro, products"),
        (["--precision=int8"], "--precision: must be of float32, bfloat16"),
        (["--plot=x.svg"], "--plot draws speed against length: say --lengths too"),
        (
            ["--lengths=16,x"],
            "--lengths: must be a whole number of at least 2, not 'x'",
        ),
        (["--sizes=huge"], "--sizes: must be of base, "),
        (["--start_up=huge"], "--start_up: must be of base, "),
    ],
)
def test_flags_are_checked(arguments, words):
    done = run_command.run(TOOL, *arguments)
    assert run_command.is_one_clear_line(done)
    assert words in done.err


@pytest.mark.medium
def test_the_real_step_and_its_limit_are_timed(tmp_path):
    plot = tmp_path / "curve.svg"
    flags = ("--only=t2t_repro,products,torch", "--lengths=8,4", "--curve_tokens=16")
    told = ("--json", "--plot", str(plot))
    done = run_command.run(TOOL, *TOY, *ONCE, *flags, *told)
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert result["peers"] == {
        "PyTorch": "left out: --torch_python names no interpreter"
    }
    sizes = [(e["work"]["batch_size"], e["work"]["length"]) for e in result["cases"]]
    assert sizes == [(2, 8), (4, 4)]
    for case in result["cases"]:
        rows = case["contenders"]
        assert set(rows) == {"t2t_repro float32", "products of the step float32"}
        for row in rows.values():
            assert row["tokens_per_second"] > 0
            assert row["memory"] > 0
            assert row["start_seconds"][0] > row["seconds_per_step"][0]
    assert plot.read_text().startswith("<?xml")


@pytest.mark.medium
def test_the_real_command_is_timed_to_its_first_update(tmp_path):
    start_up = StartUp(tmp_path, tokens=256, longest=64)
    assert 1 < start_up.first_update("tiny") < 300
    with pytest.raises(UserError, match="ended before its first update"):
        start_up.first_update("tiny,batching=none")
