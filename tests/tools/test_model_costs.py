"""Tests of parameter and operation counts against real models and the literature."""

import pytest
from model_costs import parameters, training_flops

from t2t_repro import hparams
from t2t_repro.hparams import HParams
from t2t_repro.runs.model_dir import build_model

SMALL = HParams(d_model=8, d_ff=12, num_heads=2, num_layers=1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_layers": 2, "num_decoder_layers": 1},
        {"d_k": 3, "d_v": 5},
        {"norm": "pre"},
        {"position": "learned", "max_position": 7},
        {"share_embeddings": False},
        {"target_space_embedding": False},
        {"max_relative_position": 3},
        {"vocab_divisor": 16},
    ],
    ids=str,
)
def test_parameters_equal_those_of_the_built_model(changes):
    changed = SMALL.replace(**changes)
    assert build_model(changed, 21).count_params() == parameters(changed, 21)


@pytest.mark.parametrize(
    ("name", "count"), [("base", 63_062_016), ("big", 214_204_416)]
)
def test_parameters_of_base_and_big_equal_those_of_tensor2tensor(name, count):
    """The counts are of tensor2tensor 1.15.7 with 37,000 subwords."""
    assert parameters(hparams.load(name), 37_000) == count


def test_operations_equal_manual_arithmetic():
    """Counts for d = 8, d_ff = 12, one layer each, one token per side, and V = 10.

    Encoder: 4 x 64 + 192 = 448 for the token and 16 for its attention to itself.
    Decoder: 8 x 64 - 128 + 192 = 576 for the target token, 128 for the source token,
    and 16 for each attention. Logits: 80.
    """
    multiplications = (448 + 16) + (576 + 128 + 32) + 80
    assert training_flops(SMALL, 10, 1, 1) == 6 * multiplications
