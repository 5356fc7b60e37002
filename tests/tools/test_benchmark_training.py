"""The timing of a training step: its arithmetic by hand, and a toy run."""

import io
import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace

import pytest
from model_costs import training_flops
from training_speed.contenders import (
    OURS,
    PRODUCTS,
    PROGRAMS,
    TORCH,
    Contender,
    Work,
    contenders,
    work_of,
)
from training_speed.products import Product, flops, products_of_step, square
from training_speed.report import series, summary, text_of
from training_speed.start_up import StartUp

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
    found = SMALL.products()
    assert {(p.rows, p.inner, p.columns): p.count for p in found} == multiplications
    assert [p.copies for p in found] == [1, 4, 4, 1, 1, 1]
    forward = 12 * 96 + 2 * 3 * 4 * 18 + 2 * 2 * 192 + 240
    assert flops(found) == 3 * 2 * forward


def test_the_count_is_that_of_the_papers_table():
    work = work_of("base", 32, 32, 8000)
    expected = 32 * training_flops(hparams.load("base"), 8000, 32, 32)
    assert flops(work.products()) == pytest.approx(expected, rel=1e-12)


def test_a_product_costs_two_operations_in_three_passes():
    assert Product(count=5, copies=7, rows=2, inner=3, columns=4).flops == 5040
    assert flops(square()) == 6 * 2048**3


def times(*seconds, start=9.0, memory=5_000_000):
    return {
        "seconds_per_step": list(seconds),
        "start_seconds": [start],
        "memory": memory,
    }


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
    seconds = flops(square()) / 1e9  # One GFLOP/s.
    found = summary(SMALL, {"a square product float32": times(seconds)})
    row = found["contenders"]["a square product float32"]
    assert row["gigaflops_per_second"] == pytest.approx(1.0)
    assert row["tokens_per_second"] == pytest.approx(6e9 / flops(SMALL.products()))


def whole(**parts):
    machine = {"cpus": 2, "processor": "P", "load_average": 0.0}
    empty = {"peers": {}, "cases": [], "start_up": {}, "curve": []}
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


def curve():
    return [
        summary(
            replace(SMALL, length=length),
            {
                "t2t_repro float32": times(0.5),
                "products of the step float32": times(0.25),
            },
        )
        for length in (4, 8)
    ]


def test_the_curve_is_arranged_for_drawing():
    assert series(curve()) == {
        "tiny": {
            "t2t_repro float32": [(4, 16.0), (8, 32.0)],
            "products of the step float32": [(4, 32.0), (8, 64.0)],
        }
    }
    told = text_of(whole(curve=curve())).splitlines()
    assert told[-1].split()[:2] == ["tiny", "8"]
    assert told[-1].split()[-3:] == ["32", "64", "50%"]


def test_the_curve_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from training_speed.drawing import write

    path = tmp_path / "curve.svg"
    write(series(curve()), path)
    drawn = path.read_text()
    for words in ("tokens of a sentence", "products of the step float32", ">tiny<"):
        assert words in drawn


def named(**given):
    return Namespace(
        **{"precision": ["float32", "bfloat16"], "t2t_python": None}
        | {"opennmt_python": None, "torch_python": None}
        | given
    )


def test_peers_without_an_interpreter_are_left_out_and_said_so():
    found, told = contenders(named(), list(PROGRAMS))
    assert {each.program for each in found} == {OURS, PRODUCTS, "square"}
    assert {each.precision for each in found} == {"float32", "bfloat16"}
    assert told == {
        "tensor2tensor": "left out: --t2t_python names no interpreter",
        "OpenNMT-tf": "left out: --opennmt_python names no interpreter",
        "PyTorch": "left out: --torch_python names no interpreter",
    }


def test_an_interpreter_without_the_peer_is_refused():
    with pytest.raises(UserError, match=r"--opennmt_python .* has no OpenNMT-tf"):
        contenders(named(opennmt_python=sys.executable), ["opennmt"])
    with pytest.raises(UserError, match="--t2t_python /no/python: No such file"):
        contenders(named(t2t_python="/no/python"), ["tensor2tensor"])


def test_a_contender_is_given_its_own_precision_and_dropout():
    one = Contender("x", TORCH, "python3", "bfloat16", paper_dropout=True)
    python, script, work = one.command(SMALL)
    assert (python, script) == ("python3", str(PROGRAMS[TORCH].script))
    given = json.loads(work)
    assert (given["precision"], given["paper_dropout"]) == ("bfloat16", True)
    assert given["d_ff"] == 8
    own = Contender("y", PRODUCTS, "python3", "float32").command(SMALL)
    assert own[2] == PRODUCTS


def test_turns_are_counted_and_answered():
    """The first step is made unasked; then as many as each line says."""
    program = (
        "import sys; sys.path.insert(0, 'tools/peers')\n"
        "from turns import turns\n"
        "made = 0\n"
        "for _ in turns(7):\n"
        "    made += 1\n"
        "    print('noise')\n"
        "print(made, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=run_command.ROOT,
        input="2\n3\n",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    answers = [json.loads(line) for line in io.StringIO(done.stdout)]
    assert ["seconds" in answer for answer in answers] == [False, True, True]
    assert all(answer["memory_before"] == 7 for answer in answers)
    assert all(answer["memory"] > 10**6 for answer in answers)
    assert done.stderr.splitlines()[-1] == "6"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only=fairseq"], "--only fairseq: must be of t2t_repro, products"),
        (["--precision=int8"], "--precision int8: must be of float32, bfloat16"),
        (["--plot=x.svg"], "--plot draws the cost curve: say --lengths too"),
        (["--lengths=16,x"], "--lengths 16,x: give whole numbers of at least 2"),
        (["--sizes=huge"], "--sizes huge: must be of base, "),
        (["--start_up=huge"], "--start_up huge: must be of base, "),
    ],
)
def test_flags_are_checked(arguments, words):
    done = run_command.run(TOOL, *arguments)
    assert done.status == 2
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.medium
def test_the_real_step_and_its_limit_are_timed(tmp_path):
    plot = tmp_path / "curve.svg"
    flags = ("--only=t2t_repro,torch", "--lengths=8", "--curve_tokens=16")
    command = (sys.executable, run_command.ROOT / TOOL, *TOY, *ONCE, *flags)
    done = subprocess.run(
        [*command, "--json", "--plot", plot],
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "left out" in result["peers"]["PyTorch"]
    (case,) = result["cases"]
    assert list(case["contenders"]) == ["t2t_repro float32"]
    (point,) = result["curve"]
    assert point["work"]["batch_size"] == 2
    for row in (*case["contenders"].values(), *point["contenders"].values()):
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


def test_every_product_of_a_set_is_listed_for_its_sizes():
    sizes = {"d_model": 8, "d_ff": 16, "num_heads": 4, "num_layers": 2}
    listed = products_of_step(batch_size=3, length=5, vocab_size=7, **sizes)
    assert listed[0] == Product(24, 1, 15, 8, 8)
    assert listed[1] == Product(6, 12, 5, 2, 5)
