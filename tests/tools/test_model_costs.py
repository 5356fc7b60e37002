"""Counts by arithmetic are those of real models, and of the literature."""

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
def test_a_model_has_as_many_parameters(changes):
    changed = SMALL.replace(**changes)
    assert build_model(changed, 21).count_params() == parameters(changed, 21)


@pytest.mark.parametrize(
    ("name", "count"), [("base", 63_062_016), ("big", 214_204_416)]
)
def test_the_papers_models_have_as_many_as_tensor2tensors(name, count):
    """tensor2tensor 1.15.7 with 37,000 subwords and its target-space table."""
    assert parameters(hparams.load(name), 37_000) == count


def test_operations_are_six_for_each_weight_and_token():
    """By hand: d = 8, d_ff = 12, one layer each, one token a side, V = 10.

    Encoder: 4 x 64 + 192 = 448 for the token and 16 for its attention to itself.
    Decoder: 8 x 64 - 128 + 192 = 576 of the target's token, 128 of the source's, 16
    and 16 for both attentions. Logits: 80.
    """
    hand = (448 + 16) + (576 + 128 + 32) + 80
    assert training_flops(SMALL, 10, 1, 1) == 6 * hand


@pytest.mark.parametrize(("name", "pair"), [("base", 0.378e9), ("big", 1.284e9)])
def test_a_pair_of_tokens_costs_what_the_six_n_rule_says(name, pair):
    """6 x 63.0M and 6 x 214.0M, all weights but for biases, norms and attention."""
    found = training_flops(hparams.load(name), 37_000, 30, 30) / 30
    assert found == pytest.approx(pair, rel=0.02)
