"""Tests of the beam search benchmark with a small model."""

import json
from statistics import median

import pytest

from t2t_repro.fast import int8_matmul
from t2t_repro.models import precision
from tests import run_command

TOOL = "tools/benchmarks/benchmark_decode.py"
SMALL = "--d_model=64 --num_layers=1 --vocab_size=500 --length=5 --steps=9"
SMALL += " --batch_size=3 --batches=3 --sentences=6 --rounds=1"


@pytest.mark.medium
def test_times_all_programs_on_the_same_work(monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # As the tool does.
    result = run_command.run(TOOL, *SMALL.split(), "--json")
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    bfloat16 = {"t2t_repro bfloat16", "matmuls only bfloat16"}
    programs = {
        *("t2t_repro float32", "t2t_repro float32, XLA", "matmuls only float32"),
        *("t2t_repro float32, 1 decoder layer", "CTranslate2 float32"),
        *(() if precision.unsupported_reason("bfloat16") else bfloat16),
        *([] if int8_matmul.unsupported_reason() else ["t2t_repro int8"]),
        "CTranslate2 int8",
    }
    # Each translation has nine tokens.
    works = {"3 batches of 3": 81, "batch of 3": 54, "one sentence": 54}
    assert [title for title in tables if "ratios" not in title] == list(works)
    for title, tokens in works.items():
        table = tables[title]
        assert set(table) == programs
        for row in table.values():
            seconds = row["ms"][0] / 1000
            assert row["target tokens/s"][0] * seconds == pytest.approx(tokens)
            assert row["peak memory (MiB)"] > 100
            assert row["first step (s)"] > 0
        ratio = tables[f"{title}: ratios"]["t2t_repro float32 / CTranslate2 float32"]
        mine, other = (
            median(table[f"{program} float32"]["target tokens/s"])
            for program in ("t2t_repro", "CTranslate2")
        )
        assert ratio["times as fast"] == pytest.approx(mine / other)


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
