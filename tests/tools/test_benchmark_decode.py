"""Tests of the beam search benchmark with a small model."""

import json
from importlib.util import find_spec

import pytest

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
    bfloat16 = {"t2t_repro bfloat16"}
    large_only = {
        "t2t_repro float32, 1 decoder layer",
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
    assert "CTranslate2: GENERIC" in table[THEIRS]["instruction set"]
    assert tables["beam search: ratios"][f"{FLOAT32} / {THEIRS}"] == {
        work: pytest.approx(table[FLOAT32][work][0] / table[THEIRS][work][0])
        for work in works
    }


@pytest.mark.slow
def test_times_keras_hub(forked_python, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    small = "--batches=1 --sentences=1 --beam_size=2"
    result = run_command.run(
        TOOL, *SMALL.split(), *small.split(), "--only=keras_hub", "--json"
    )
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    backends = ["TensorFlow XLA", *(["JAX"] if find_spec("jax") else [])]
    table = tables["beam search"]
    assert set(table) == {
        f"{program}, {backend}"
        for program in ("generate", "BeamSampler")
        for backend in backends
    }
    for row in table.values():
        assert row["batch of 3"][0] > 0
    for backend in backends:
        ours, theirs = (f"{each}, {backend}" for each in ("generate", "BeamSampler"))
        ratio = table[ours]["one sentence"][0] / table[theirs]["one sentence"][0]
        found = tables["beam search: ratios"][f"{ours} / {theirs}"]
        assert found["one sentence"] == pytest.approx(ratio)
