"""What a device decides by itself is chosen once, fits, and is kept."""

import numpy as np
import pytest

from t2t_repro import hparams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.training import devices
from t2t_repro.training.devices import Gpus

BIG, BASE = (hparams.load(name) for name in ("big", "base"))
H100 = Gpus("H100", (9, 0), 80 * 10**9)
A100 = Gpus("A100", (8, 0), 40 * 10**9)
V100 = Gpus("V100", (7, 0), 16 * 10**9)

COMPILES = (
    "XLA compiles each shape of a part when it first comes, up to a minute each: the "
    "first updates are slow"
)


def resolved(asked, found, replicas=1, kept=None, accepted=()):
    return devices.resolve_auto(asked, kept, accepted, replicas, found)


def test_on_a_cpu_everything_is_as_it_was_before_there_was_auto():
    chosen, said = resolved(BIG, None)
    assert chosen == BIG.replace(
        max_tokens_per_device=4096, rows_multiple=1, precision="float32", xla=False
    )
    assert said == [
        "max_tokens_per_device 4,096, rows_multiple 1, precision float32, xla false: "
        "chosen for a CPU"
    ]
    assert resolved(chosen, None) == (chosen, [])


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("found", [H100, A100, V100], ids=lambda one: one.name)
def test_the_parts_of_a_batch_are_a_multiple_of_the_replicas_and_fit(found, replicas):
    chosen, _ = resolved(BIG, found, replicas)
    parts = 25_000 // chosen.tokens_per_part
    assert parts % replicas == 0
    assert chosen.tokens_per_part <= devices.tokens_that_fit(chosen, found.memory)
    # Fewer parts would not fit, or would leave a device idle.
    larger = 25_000 // (parts - replicas) if parts > replicas else None
    assert larger is None or larger > devices.tokens_that_fit(chosen, found.memory)


def test_bfloat16_and_xla_are_for_gpus_that_have_bfloat16():
    for found, precision, xla in ((A100, "bfloat16", True), (V100, "float32", False)):
        chosen, said = resolved(BASE, found)
        assert (chosen.precision, chosen.xla) == (precision, xla)
        assert chosen.rows_multiple == 8
        assert f"chosen for {found.name} (compute capability" in said[0]
        assert said[1:] == [COMPILES] * xla
    asked = BASE.replace(precision="float32")
    _, said = resolved(asked, A100)
    tf32 = "products of float32 are TF32 on this GPU, TensorFlow's default"
    assert said[1:] == [tf32, COMPILES]


@pytest.mark.parametrize(("updates", "xla"), [(49_999, False), (50_000, True)])
def test_a_short_training_does_not_wait_for_a_compiler(updates, xla):
    chosen, said = resolved(BASE.replace(train_steps=updates), H100)
    assert (chosen.precision, chosen.xla) == ("bfloat16", xla)
    assert (COMPILES in said) == xla
    # Asked for, it is done.
    asked = BASE.replace(train_steps=updates, xla=True)
    assert resolved(asked, H100)[0].xla


def test_a_training_keeps_what_it_began_with_wherever_it_goes_on():
    begun, _ = resolved(BIG, H100, 8)
    assert begun.max_tokens_per_device == 3125
    for found, replicas in ((None, 1), (V100, 2), (A100, 3)):
        chosen, said = resolved(BIG, found, replicas, begun)
        assert chosen == begun
        assert said[0].endswith(": as this training began")
    accepted = {"max_tokens_per_device"}
    chosen, _ = resolved(BIG, H100, 2, begun, accepted)
    assert chosen == begun.replace(max_tokens_per_device=12_500)
    # An imported model was not begun anywhere yet.
    assert resolved(BIG, H100, 8, kept=BIG)[0] == begun


def test_where_memory_is_unknown_parts_are_those_of_a_cpu():
    chosen, (said, _) = resolved(BIG, Gpus("GPU", (8, 0), None), 2)
    # 25,000 in 8 parts: the fewest of at most 3,571 that two devices can share.
    assert chosen.max_tokens_per_device == 3125
    assert "memory unknown" in said


@pytest.mark.parametrize(
    ("positions", "counted"), [(3_570, 2.6), (12_480, 9.2), (24_990, 22.0)]
)
def test_the_formula_is_near_what_a_compiler_for_a_gpu_counted(positions, counted):
    """GB of temporaries of big in bfloat16 with XLA, widths of 30, as compiled."""
    asked = BIG.replace(precision="bfloat16", xla=True)
    found = positions * devices.bytes_per_position(asked, 30) / 1e9
    assert found == pytest.approx(counted, rel=0.15)
    assert devices.MARGIN * found > counted


@pytest.mark.parametrize(("gigabytes", "positions"), [(80, 25_000), (40, 12_500)])
def test_big_has_room_for_the_parts_that_were_compiled(gigabytes, positions):
    asked = BIG.replace(precision="bfloat16")
    assert devices.tokens_that_fit(asked, gigabytes * 10**9) >= positions


@pytest.mark.parametrize("share", [True, False])
def test_the_weights_are_counted(share):
    asked = hparams.load("tiny").replace(vocab_size=900, share_embeddings=share)
    weights = named_variables(build_model(asked, 900)).values()
    counted = sum(int(np.prod(one.shape)) for one in weights)
    # Scales, offsets and the table of target spaces are left out.
    told = devices.fixed_bytes(asked) / 32
    assert told == pytest.approx(counted, rel=0.03)
