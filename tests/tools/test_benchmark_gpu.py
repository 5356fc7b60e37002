"""Tests of the GPU benchmark: operation counts, and a dry run on a CPU."""

import json
import re
import signal

import pytest
from benchmarks import report
from benchmarks.benchmark_gpu import DRY, Sizes, measurements
from benchmarks.in_turn import Contender, Process

from tests import run_command

TOOL = "tools/benchmarks/benchmark_gpu.py"


def test_counts_tokens_operations_and_bytes(tmp_path):
    real = measurements(Sizes(), str(tmp_path))
    named = {each.name: each for each in real}
    assert len(named) == len(real)
    # A row of 256 has room for eight pairs of 30 tokens.
    pairs = {"48 x 256": 48 * 8, "96 x 256": 96 * 8, "416 x 30": 416, "120 x 30": 120}
    steps = [each for each in real if each.task == "training.train"]
    for each in steps:
        (size,) = [size for size in pairs if f" {size}" in each.name]
        assert each.tokens == 30 * pairs[size]
    # Six operations per weight (big has 214.0M) and pair of tokens: 16 TFLOP.
    step = named["step of big, 416 x 30"]
    assert step.operations == pytest.approx(6 * 214.0e6 * 12480, rel=0.02)
    # Four matmuls forward and eight backward; the copy reads and writes each byte.
    matmuls = named["matmuls of 8,192 x 8,192, TF32"]
    assert matmuls.operations == 12 * 2 * 8192**3
    assert named["copy"].moved == 2 * 2**31
    tasks = {each.task for each in measurements(DRY, str(tmp_path))}
    assert tasks == {each.task for each in real}


def test_only_named_measurements_have_flags(tmp_path):
    flags = {
        re.sub(r"step of tiny, (packed )?\d x \d+(, |$)", "", each.name): each.flags
        for each in measurements(DRY, str(tmp_path))
        if each.task == "training.train" and not each.name.endswith("2 x 24")
    }
    without = "--xla_gpu_enable_triton_gemm=false"
    assert flags == {
        "": "",
        "without Triton's matmuls": without,
        "without Triton's matmuls, autotune level 0": (
            f"{without} --xla_gpu_autotune_level=0"
        ),
        "without XLA": "",
        "plain loss": "",
        "TF32": "",
        "autotune level 2": "--xla_gpu_autotune_level=2",
        "autotune level 0": "--xla_gpu_autotune_level=0",
        "warm cache": f"--xla_gpu_per_fusion_autotune_cache_dir={tmp_path}/autotune",
    }


def test_the_first_measurement_fills_the_autotuning_cache(tmp_path):
    first, *others = measurements(DRY, str(tmp_path))
    (warm,) = [each for each in others if each.name == f"{first.name}, warm cache"]
    assert (tmp_path / "autotune").is_dir()
    assert warm == first._replace(name=warm.name)


def test_process_gets_environment_variables_and_sees_no_gpu_by_default(tmp_path):
    program = "import os; input(); print(f'[{os.environ[\"CUDA_VISIBLE_DEVICES\"]}]')"
    for gpus, variables in ((-1, {}), (3, {"CUDA_VISIBLE_DEVICES": "3"})):
        command = ["python3", "-c", program]
        contender = Contender(str(gpus), command, variables=variables)
        with Process(contender, tmp_path) as process:
            assert process.ask(0) == [gpus]


@pytest.mark.medium
def test_prints_the_figures_so_far_at_the_time_limit(
    forked_python, monkeypatch, tmp_path
):
    # Shortens the time limit to a second after a figure.
    add_turn = report.add_turn

    def add_figure(*arguments, **figures):
        add_turn(*arguments, **figures)
        signal.alarm(1)

    monkeypatch.setattr(report, "add_turn", add_figure)
    result = run_command.run(TOOL, "--minutes", "1", "--json")
    assert result.status == 0, result.err
    assert "time limit of 1 minutes reached; the figures so far:" in result.err
    figures = json.loads(result.out)
    assert figures["machine"]["gpu"] is None
    rows = figures["tables"]["on a GPU"].values()
    assert 0 < len(rows) < len(measurements(DRY, str(tmp_path)))
    for row in rows:
        assert row["ms"][0] > 0


@pytest.mark.slow
def test_dry_run_makes_all_measurements(tmp_path):
    result = run_command.run(TOOL, "--json")
    assert result.status == 0, result.err
    table = json.loads(result.out)["tables"]["on a GPU"]
    planned = {each.name: each for each in measurements(DRY, str(tmp_path))}
    assert list(table) == list(planned)
    for name, row in table.items():
        each, (ms,) = planned[name], row["ms"]
        assert row.get("target tokens/s", [0])[0] * ms / 1000 == pytest.approx(
            each.tokens
        )
        assert row.get("GB/s", [0])[0] * ms * 1e6 == pytest.approx(each.moved)
