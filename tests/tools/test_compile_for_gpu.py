"""The least time of a compiled program, by hand; and a small one really compiled."""

import json
from dataclasses import replace

import pytest
from benchmarks.compile_for_gpu import LENGTH, Case, beyond_budget, summary
from benchmarks.gpu import roofline
from benchmarks.gpu.chips import CHIPS
from model_costs import training_flops

from t2t_repro import hparams
from tests import run_command

TOOL = "tools/benchmarks/compile_for_gpu.py"

# As XLA writes it, one instruction of each sort; the fusions' bodies are not kernels.
PROGRAM = """\
HloModule cluster, is_scheduled=true, entry_computation_layout={(f32[4,8]{1,0})}

%fused (p.0: f32[4,8]) -> bf16[4,8] {
  %p.0 = f32[4,8]{1,0} parameter(0)
  ROOT %convert.0 = bf16[4,8]{1,0} convert(%p.0)
}

ENTRY %main.7 (a.0: f32[4,8], b.0: bf16[8,16], n.0: s32[]) -> (bf16[4,16], pred[4]) {
  %a.0 = f32[4,8]{1,0} parameter(0), metadata={op_name="XLA_Args"}
  %b.0 = bf16[8,16]{1,0} parameter(1)
  %constant_1 = pred[4]{0} constant({...})
  %convert.1 = bf16[4,8]{1,0} fusion(%a.0), kind=kLoop, calls=%fused, \
metadata={op_name="model/Cast (twice)"}
  %dot.1 = (bf16[4,16]{1,0}, s8[1024]{0}) custom-call(%convert.1, /*index=1*/%b.0), \
custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":\
{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],\
"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[]}}}
  %get-tuple-element.1 = bf16[4,16]{1,0} get-tuple-element(%dot.1), index=0
  %bitcast.1 = bf16[64]{0} bitcast(%get-tuple-element.1)
  %sum.1 = (f32[4]{0}, /*index=1*/pred[4]{0}) fusion(%bitcast.1, %constant_1), \
kind=kInput, calls=%fused
  %get-tuple-element.2 = pred[4]{0} get-tuple-element(%sum.1), index=1
  ROOT %tuple.1 = (bf16[4,16]{1,0}, pred[4]{0}) tuple(%bitcast.1, %get-tuple-element.2)
}
"""
# 10 bytes and 100 operations a second.
SLOW = replace(CHIPS["H100"], bandwidth=10.0, peak=100.0)


def test_kernels_are_read_with_what_they_move_and_compute():
    convert, product, total = roofline.kernels(PROGRAM)
    # 32 numbers of four bytes in, of two out.
    assert convert == ("convert.1", "fusion kLoop", 128 + 64, 0)
    # (4, 8) by (8, 16), scratch space left out: 4 x 8 x 16 multiplications.
    assert product == ("dot.1", "product", 64 + 256 + 128, 2 * 512)
    # 64 numbers and four truths in; four sums and four truths out.
    assert total == ("sum.1", "fusion kInput", 128 + 4 + 16 + 4, 0)


def test_of_what_is_cut_only_the_part_is_read():
    """Two rows and one of eight numbers; an operand also read whole counts once."""
    body = """  %p.0 = f32[4,8]{1,0} parameter(0)
  %slice.1 = f32[2,8]{1,0} slice(%p.0), slice={[0:2], [0:8]}
  %slice.2 = f32[1,8]{1,0} slice(%p.0), slice={[3:4], [0:8]}
  ROOT %convert.0 = bf16[4,8]{1,0} concatenate(%slice.1, %slice.2, %slice.2)
"""
    start, end = PROGRAM.index("  %p.0"), PROGRAM.index("}\n\nENTRY")
    sliced = PROGRAM[:start] + body + PROGRAM[end:]
    assert roofline.kernels(sliced)[0].moved == 2 * 32 + 32 + 64
    also_whole = sliced.replace("%slice.2)\n", "%slice.2, %p.0)\n")
    assert roofline.kernels(also_whole)[0].moved == 128 + 64


def test_a_product_of_many_matrices_is_counted_once_for_each():
    kernel = PROGRAM.replace("bf16[4,8]", "bf16[3,4,8]").replace(
        'contracting_dimensions":["1"]', 'contracting_dimensions":["2"]'
    )
    kernel = kernel.replace("(bf16[4,16]", "(bf16[3,4,16]")
    assert roofline.kernels(kernel)[1].operations == 3 * 2 * 512


def test_a_kernel_takes_the_longer_of_moving_and_computing(monkeypatch):
    monkeypatch.setattr(roofline, "BANDWIDTH_REACHED", 0.5)
    monkeypatch.setattr(roofline, "PEAK_REACHED", 0.25)
    monkeypatch.setattr(roofline, "LAUNCH_SECONDS", 2.0)
    moves = roofline.Kernel("a", "fusion", 50, 400)
    assert moves.least_seconds(SLOW) == 5  # Not 4.
    assert moves.expected_seconds(SLOW) == 16 + 2  # Not 10.
    multiplies = roofline.Kernel("b", "product", 30, 400)
    assert multiplies.least_seconds(SLOW) == 4


ANSWER = {
    "compiled": PROGRAM,
    "arguments": 100,
    "results": 110,
    "temporaries": 1000,
    "compile_seconds": 3.0,
}


def test_a_case_is_summed_up_and_held_to_its_budgets():
    row = summary(Case("big", 12480, "H100"), ANSWER, SLOW)
    assert (row["kernels"], row["moved (GB)"]) == (3, 792e-9)
    assert row["TFLOP"] == 1024e-12
    assert row["least (ms)"] == pytest.approx(19200 + 44800 + 15200)
    assert row["memory (GB)"] == pytest.approx((1000 + 100 + 110 + 4 * 100) / 1e9)
    assert row["target tokens/s"] * row["expected (ms)"] / 1000 == pytest.approx(12480)
    (line,) = beyond_budget("big/12480/H100", row)
    assert line == "big/12480/H100: expected (ms) 93176.5, more than 49.0"
    # Memory has a budget on any chip.
    large = {"expected (ms)": 93176.5, "memory (GB)": 41.0}
    (line,) = beyond_budget("big/12480/A100", large)
    assert line == "big/12480/A100: memory (GB) 41.0, more than 40.0"
    assert beyond_budget("base/12480/A100", large) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "huge/3600/H100",
            "must be SIZE/POSITIONS/CHIP with a chip of H100, H200, A100",
        ),
        ("big/3600/V100", "not 'big/3600/V100'"),
        ("big/3601/H100", "positions must be a multiple of 30"),
    ],
)
def test_cases_are_checked(given, words):
    done = run_command.run(TOOL, "--cases", given)
    assert run_command.is_one_clear_line(done)
    assert words in done.err


@pytest.mark.slow
def test_a_tiny_step_is_compiled_for_every_chip(tmp_path):
    """Installs JAX and its CUDA compiler, some 900 MB."""
    cases = [f"tiny/240/{chip}" for chip in CHIPS]
    flags = ("--json", "--environment", str(tmp_path / "jax"))
    done = run_command.run(TOOL, "--cases", ",".join(cases), *flags)
    assert done.status == 0, done.err
    result = json.loads(done.out)
    tiny = hparams.load("tiny")
    operations = 8 * training_flops(tiny, tiny.vocab_size, LENGTH, LENGTH)
    (table,) = result["tables"].values()
    assert list(table) == cases
    for row in table.values():
        # Odd sizes are padded to multiples of eight.
        assert row["TFLOP"] * 1e12 == pytest.approx(operations, rel=0.1)
        assert row["kernels"] > 30
        assert 0 < row["least (ms)"] < row["expected (ms)"]
        assert row["temporaries (GB)"] > 0
