"""Tests of the resolution of "auto" hyper-parameters for a device."""

import os

import pytest
import tensorflow as tf

from t2t_repro import hparams
from t2t_repro.training import devices, memory
from t2t_repro.training.devices import Gpus

BIG, BASE = (hparams.load(name) for name in ("big", "base"))
H100 = Gpus("H100", (9, 0), 80 * 10**9)
A100 = Gpus("A100", (8, 0), 40 * 10**9)
V100 = Gpus("V100", (7, 0), 16 * 10**9)


def resolve(requested, gpus, replicas=1, earlier=None, accepted=()):
    return devices.resolve_auto(requested, earlier, accepted, replicas, gpus)


def test_a_cpu_has_fixed_defaults():
    chosen, lines = resolve(BIG, None)
    assert chosen == BIG.replace(
        max_shapes=48,
        max_tokens_per_device=4096,
        rows_multiple=1,
        precision="float32",
        xla=False,
    )
    assert lines == [
        "max_shapes 48, max_tokens_per_device 4,096, rows_multiple 1, "
        "precision float32, xla false: chosen for a CPU"
    ]
    assert resolve(chosen, None) == (chosen, [])


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("gpus", [H100, A100, V100], ids=lambda gpus: gpus.name)
def test_micro_batches_fit_and_are_a_multiple_of_the_replicas(gpus, replicas):
    chosen, _ = resolve(BIG, gpus, replicas)
    micro_batches = 25_000 // chosen.tokens_per_microbatch
    assert micro_batches % replicas == 0
    limit = memory.tokens_that_fit(chosen, gpus.memory)
    assert chosen.tokens_per_microbatch <= limit
    # The next smaller multiple of the replicas does not fit.
    fewer = micro_batches - replicas
    assert fewer <= 0 or 25_000 // fewer > limit


def test_bfloat16_and_xla_need_a_gpu_with_bfloat16():
    for gpus, *values in (
        (A100, "bfloat16", "auto", "auto"),
        (V100, "float32", False, 48),
    ):
        chosen, lines = resolve(BASE, gpus)
        assert [chosen.precision, chosen.xla, chosen.max_shapes] == values
        assert chosen.rows_multiple == 8
        assert len(lines) == 1
        assert f"chosen for {gpus.name} (compute capability" in lines[0]
        assert "auto" not in lines[0]
    _, lines = resolve(BASE.replace(precision="float32"), A100)
    tf32 = "float32 matmuls use TF32 on this GPU (TensorFlow's default)"
    assert lines[1:] == [tf32]


@pytest.mark.parametrize("gpus", [None, V100, H100])
def test_the_number_of_shapes_is_chosen_later_if_xla_compiles(gpus):
    chosen, _ = resolve(BASE.replace(xla=True), gpus)
    assert (chosen.xla, chosen.max_shapes) == (True, "auto")
    chosen, _ = resolve(BASE.replace(xla=True, max_shapes=5), gpus)
    assert chosen.max_shapes == 5
    chosen, _ = resolve(BASE.replace(xla=False), gpus)
    assert (chosen.xla, chosen.max_shapes) == (False, 48)


def test_a_resumed_training_keeps_its_values_on_any_device():
    started, _ = resolve(BIG, H100, 8)
    assert started.max_tokens_per_device == 3125
    earlier = started.replace(xla=True, max_shapes=24)
    for gpus, replicas in ((None, 1), (V100, 2), (A100, 3)):
        chosen, lines = resolve(BIG, gpus, replicas, earlier)
        assert chosen == earlier
        assert lines[0].endswith(": kept from the start of this training")
    accepted = {"max_tokens_per_device"}
    chosen, _ = resolve(BIG, H100, 2, earlier, accepted)
    assert chosen == earlier.replace(max_tokens_per_device=12_500)
    # An imported model still has "auto" values.
    assert resolve(BIG, H100, 8, earlier=BIG)[0] == started


def test_unknown_memory_uses_the_micro_batches_of_a_cpu():
    chosen, (line,) = resolve(BIG, Gpus("GPU", (8, 0), None), 2)
    # 25,000 tokens need seven micro-batches of up to 3,571; two devices need eight.
    assert chosen.max_tokens_per_device == 3125
    assert "memory unknown" in line


def test_flags_of_xla_precede_the_deterministic_flag_and_may_enable_triton(monkeypatch):
    monkeypatch.setattr(tf.config.experimental, "enable_op_determinism", lambda: None)
    before = "--xla_dump_to=dump --xla_gpu_enable_triton_gemm=true"
    for flags, expected in (("", ""), (before, f"{before} ")):
        monkeypatch.setenv("XLA_FLAGS", flags)
        devices.compute_the_same_bits()
        assert os.environ["XLA_FLAGS"] == (
            f"--xla_gpu_enable_triton_gemm=false {expected}"
            "--xla_gpu_deterministic_ops=true"
        )
