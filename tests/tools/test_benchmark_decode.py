"""Tests of the beam search benchmark with a small model."""

import json
import sys
from argparse import Namespace

import pytest
from benchmarks import decoding
from benchmarks.in_turn import PEERS, Contender

from t2t_repro.fast import int8_matmul
from t2t_repro.models import precision
from tests import run_command

TOOL = "tools/benchmarks/benchmark_decode.py"
SMALL = "--d_model=64 --num_layers=1 --vocab_size=500 --length=5 --steps=9"
SMALL += " --batch_size=3 --batches=3 --sentences=6 --rounds=1"
FLOAT32, THEIRS = "t2t_repro float32", "CTranslate2 float32"


@pytest.mark.medium
def test_times_all_programs_on_the_same_work(forked_python, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # As the tool does.
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "GENERIC")
    result = run_command.run(TOOL, *SMALL.split(), "--json")
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    bfloat16 = {"t2t_repro bfloat16", "matmuls only bfloat16"}
    large_only = {
        *("t2t_repro float32, 1 decoder layer", "matmuls only float32"),
        *(() if precision.unsupported_reason("bfloat16") else bfloat16),
    }
    int8 = ("t2t_repro int8", "t2t_repro int8, XLA")
    programs = {
        *(FLOAT32, "t2t_repro float32, XLA", THEIRS, "CTranslate2 int8"),
        *(() if int8_matmul.unsupported_reason() else int8),
    }
    works = ["3 batches of 3", "batch of 3", "batch of 2", "one sentence"]
    table = tables["beam search"]
    assert set(table) == programs | large_only
    for name, row in table.items():
        # Memory, start and instruction set follow.
        expected = [w for w in works if w != "batch of 2" or name in programs]
        assert list(row)[:-3] == expected
        assert row["peak memory (MiB)"] > 100
        assert row["first step (s)"] > 0
    assert "CTranslate2: GENERIC" in table[THEIRS]["instruction set"]
    assert "oneDNN: " in table[FLOAT32]["instruction set"]
    assert tables["beam search: ratios"][f"{FLOAT32} / {THEIRS}"] == {
        work: pytest.approx(table[FLOAT32][work][0] / table[THEIRS][work][0])
        for work in works
    }


def test_speeds_are_tokens_of_all_calls_per_second(tmp_path):
    settings = Namespace(
        **{"batches": 1, "batch_size": 5, "small_batches": [8, 2], "sentences": 3},
        **{"length": 4, "steps": 10, "vocab_size": 9, "seed": 1, "rounds": 2},
        work_dir=str(tmp_path),
    )
    program = (
        f"import sys; sys.path.insert(0, {str(PEERS)!r})\n"
        "from turns import turns\n"
        "for _, answer in turns(): answer['seconds'] = float(sys.argv[1])\n"
    )
    contenders = [
        Contender(name, [sys.executable, "-c", program, seconds])
        for name, seconds in (("a", "0.5"), ("b", "2"))
    ]
    tables = {}
    pairs = [("a", "b")]
    list(decoding.timed(settings, contenders, tables, "search", pairs, large_only="b"))
    # One batch of 5, two of 2 and three sentences, each with 10 tokens.
    speeds = {"batch of 5": 100, "batch of 2": 80, "one sentence": 60}
    figures = ("peak memory (MiB)", "first step (s)", "instruction set")
    rows = {
        name: {work: speed for work, speed in row.items() if work not in figures}
        for name, row in tables["search"].items()
    }
    assert rows == {
        "a": {work: [speed] * 2 for work, speed in speeds.items()},
        "b": {"batch of 5": [25] * 2, "one sentence": [15] * 2},
    }
    ratios = {"batch of 5": 4, "one sentence": 4}
    assert tables["search: ratios"] == {"a / b": ratios}


@pytest.mark.parametrize("only", ["t2t_repro,products", "ctranslate2"])
def test_requires_ctranslate2_only_to_time_it(monkeypatch, only):
    # Makes `import ctranslate2` fail, and times nothing.
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    monkeypatch.setattr(decoding, "timed", lambda *_: [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    result = run_command.run(TOOL, *SMALL.split(), "--only", only)
    missing = "CTranslate2 is not installed"
    assert (result.status, missing in result.err) == (
        (2, True) if only == "ctranslate2" else (0, False)
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--only", "fairseq"], "--only: must be one of t2t_repro, ctranslate2"),
        (["--steps", "4"], "--steps must be at least --length"),
        (["--d_model", "100"], "--d_model must be a multiple of 64"),
    ],
)
def test_rejects_invalid_flags(flags, words):
    result = run_command.run(TOOL, *flags)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
