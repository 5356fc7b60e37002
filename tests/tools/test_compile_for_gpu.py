"""Tests of the expected time of compiled programs."""

import json

import pytest
from benchmarks import roofline
from benchmarks.chips import CHIPS
from benchmarks.compile_for_gpu import Case, figures
from model_costs import training_flops

from t2t_repro import hparams
from tests import run_command

TOOL = "tools/benchmarks/compile_for_gpu.py"

# Instructions as XLA prints them: a fusion, a matmul, and a loop of three iterations
# that reads and writes one row of eight numbers.
PROGRAM = """\
HloModule cluster, is_scheduled=true

%fused (p.0: f32[4,8]) -> bf16[4,8] {
  %p.0 = f32[4,8]{1,0} parameter(0)
  ROOT %convert.0 = bf16[4,8]{1,0} convert(%p.0)
}

%fused.1 (p.1: f32[4,16], p.2: s32[], p.3: f32[4,16]) -> f32[4,16] {
  %p.1 = f32[4,16]{1,0} parameter(0)
  %p.2 = s32[] parameter(1)
  %p.3 = f32[4,16]{1,0} parameter(2)
  %row.1 = f32[1,16]{1,0} dynamic-slice(%p.1, %p.2), dynamic_slice_sizes={1,16}
  ROOT %row.2 = f32[4,16]{1,0} dynamic-update-slice(%p.3, %row.1, %p.2)
}

%body (state: (s32[], f32[4,16], f32[4,16])) -> (s32[], f32[4,16], f32[4,16]) {
  %state = (s32[], f32[4,16]{1,0}, f32[4,16]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %from = f32[4,16]{1,0} get-tuple-element(%state), index=1
  %to = f32[4,16]{1,0} get-tuple-element(%state), index=2
  %row = f32[4,16]{1,0} fusion(%from, %i, %to), kind=kLoop, calls=%fused.1
  ROOT %next = (s32[], f32[4,16]{1,0}, f32[4,16]{1,0}) tuple(%i, %from, %row)
}

ENTRY %main.7 (a.0: f32[4,8], b.0: bf16[8,16]) -> f32[4,16] {
  %a.0 = f32[4,8]{1,0} parameter(0), metadata={op_name="XLA_Args"}
  %b.0 = bf16[8,16]{1,0} parameter(1)
  %convert.1 = bf16[4,8]{1,0} fusion(%a.0), kind=kLoop, calls=%fused, \
metadata={op_name="model/Cast (twice)"}
  %dot.1 = (f32[4,16]{1,0}, s8[1024]{0}) custom-call(%convert.1, /*index=1*/%b.0), \
custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":\
{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],\
"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[]}}}
  %get-tuple-element.1 = f32[4,16]{1,0} get-tuple-element(%dot.1), index=0
  %i.0 = s32[] constant(0)
  %tuple.1 = (s32[], f32[4,16]{1,0}, f32[4,16]{1,0}) tuple(%i.0, \
%get-tuple-element.1, %get-tuple-element.1)
  %while = (s32[], f32[4,16]{1,0}, f32[4,16]{1,0}) while(%tuple.1), \
condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  ROOT %result = f32[4,16]{1,0} get-tuple-element(%while), index=2
}
"""


def test_counts_the_bytes_and_operations_of_kernels():
    convert, matmul, *rows = roofline.kernels(PROGRAM)
    # 32 numbers of four bytes are read, 32 of two bytes written.
    assert convert == ("convert.1", "fusion kLoop", 128 + 64, 0)
    # (4, 8) by (8, 16); the scratch space does not count.
    assert matmul == ("dot.1", "matmul", 64 + 256 + 256, 2 * 4 * 8 * 16)
    # An index and a row of 16 numbers are read, a row is written.
    assert rows == 3 * [("row", "fusion kLoop", 4 + 64 + 64, 0)]


def test_multiplies_the_operations_of_a_matmul_by_the_size_of_its_batch():
    batch = PROGRAM
    for old, new in (
        ("bf16[4,8]", "bf16[3,4,8]"),
        ("(f32[4,16]{1,0}, s8", "(f32[3,4,16]{2,1,0}, s8"),
        ('lhs_contracting_dimensions":["1"]', 'lhs_contracting_dimensions":["2"]'),
    ):
        batch = batch.replace(old, new)
    assert roofline.kernels(batch)[1].operations == 3 * 2 * 512


def test_kernel_takes_the_longer_time_of_moving_and_computing():
    chip = CHIPS["H100"]._replace(bandwidth=10.0, peak=100.0)
    launch = 1.5e-6
    moving = roofline.Kernel("a", "fusion", moved=51, operations=300)
    assert moving.seconds(chip) == pytest.approx(6 + launch, rel=1e-9)
    computing = roofline.Kernel("b", "matmul", moved=34, operations=303)
    assert computing.seconds(chip) == pytest.approx(5 + launch, rel=1e-9)


def test_compares_the_times_of_equal_numbers_of_positions():
    answer = {"compiled": PROGRAM, "temporaries": 10**9, "compile_seconds": 3.0}
    row = figures(Case("big", "buckets", 2, 64, "plain", "H100"), answer)
    assert row["TFLOP"] == 1024e-12
    assert row["temporaries (GB)"] == 1
    assert row["ms per 12,288 positions"] == pytest.approx(row["expected (ms)"] * 96)


@pytest.mark.parametrize(
    "name",
    ["big/packed/48x256/plain/V100", "big/sorted/48x256/plain/H100", "big/plain/H100"],
)
def test_rejects_unknown_cases(name):
    result = run_command.run(TOOL, "--cases", name)
    assert run_command.is_one_clear_line(result)
    assert f"big/buckets/416x30/plain/H100, not '{name}'" in result.err


@pytest.mark.slow
def test_compiles_a_tiny_step_with_both_forms_of_the_loss(tmp_path):
    """Installs JAX and its CUDA compiler, about 900 MB."""
    cases = [f"tiny/packed/8x64/{loss}/H100" for loss in ("plain", "chunked")]
    flags = ("--json", "--environment", str(tmp_path / "jax"))
    result = run_command.run(TOOL, "--cases", ",".join(cases), *flags)
    assert result.status == 0, result.err
    tiny = hparams.load("tiny")
    operations = 8 * training_flops(tiny, tiny.vocab_size, 64, 64)
    (table,) = json.loads(result.out)["tables"].values()
    assert list(table) == cases
    for row in table.values():
        # XLA pads odd sizes to multiples of eight.
        assert row["TFLOP"] * 1e12 == pytest.approx(operations, rel=0.1)
        assert row["expected (ms)"] > 0
        assert row["temporaries (GB)"] > 0
