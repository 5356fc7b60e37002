"""The estimate of a step's memory agrees with XLA's compiler."""

import numpy as np
import pytest

from t2t_repro import fast, hparams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.training import memory

BIG = hparams.load("big")


@pytest.mark.parametrize(
    ("positions", "measured"), [(3_570, 2.6), (12_480, 9.2), (24_990, 22.0)]
)
def test_bytes_per_position_agrees_with_xla(positions, measured):
    """`measured` is in GB, from XLA's compiler for big in bfloat16 and length 30."""
    requested = BIG.replace(precision="bfloat16", xla=True)
    estimate = positions * memory.bytes_per_position(requested, 30) / 1e9
    assert estimate == pytest.approx(measured, rel=0.15)
    assert memory.MARGIN * estimate > measured


def test_loss_in_chunks_bounds_the_memory_of_the_logits():
    """`measured` is in GB, from XLA's compiler for big in bfloat16 and length 30."""
    requested = BIG.replace(precision="bfloat16", xla=True)
    plain, fixed = memory.bytes_per_position(requested, 30), memory.fixed_bytes(BIG)
    fast.install("GPU")
    each = memory.bytes_per_position(requested, 30)
    # 37,000 logits, each in bfloat16 and in float32.
    assert plain - each == 6 * 37_000
    chunk = memory.fixed_bytes(requested) - fixed
    assert chunk == 6 * 2**26
    measured = 7.21
    assert (12_480 * each + chunk) / 1e9 == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(("precision", "size"), [("bfloat16", 6), ("float32", 8)])
def test_logits_have_two_precisions(precision, size):
    """Each one is kept in the training precision and in float32."""
    requested = BIG.replace(precision=precision)
    wider = requested.replace(vocab_size=BIG.vocab_size + 10)
    fewer, more = (memory.bytes_per_position(h, 30) for h in (requested, wider))
    assert more - fewer == 10 * size


@pytest.mark.parametrize(("gigabytes", "positions"), [(80, 25_000), (40, 12_500)])
def test_tokens_that_fit_for_big(gigabytes, positions):
    requested = BIG.replace(precision="bfloat16")
    assert memory.tokens_that_fit(requested, gigabytes * 10**9) >= positions


@pytest.mark.parametrize("share", [True, False])
def test_fixed_bytes_agrees_with_the_weights(share):
    requested = hparams.load("tiny").replace(vocab_size=900, share_embeddings=share)
    weights = named_variables(build_model(requested, 900)).values()
    size = sum(int(np.prod(weight.shape)) for weight in weights)
    # The estimate ignores scales, offsets and the table of target spaces.
    estimate = memory.fixed_bytes(requested) / 32
    assert estimate == pytest.approx(size, rel=0.03)
