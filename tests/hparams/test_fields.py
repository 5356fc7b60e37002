"""The hyper-parameters themselves: frozen, typed, within their limits."""

from __future__ import annotations

import dataclasses

import pytest

from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import rule_of
from t2t_repro.system.errors import UserError


def test_a_set_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        HParams().d_model = 256  # type: ignore[misc]


def test_every_field_says_what_it_means_and_where_it_comes_from():
    for field in dataclasses.fields(HParams):
        rule = rule_of(field)
        assert rule.doc.endswith("."), field.name
        assert rule.source, field.name


def test_a_whole_number_is_welcome_where_a_float_is_wanted():
    assert repr(HParams(dropout=0).dropout) == "0.0"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_model": 0}, "d_model=0 must be at least 1"),
        ({"d_model": 100}, "d_model=100 is not a multiple of num_heads=8"),
        ({"d_model": 100, "d_k": 16}, "or set d_v"),
        ({"d_model": "512"}, "d_model must be a whole number, not '512' (str)"),
        ({"num_layers": True}, "num_layers must be a whole number, not True (bool)"),
        ({"self_attention_radius": -1}, "self_attention_radius=-1 must be at least 0"),
        ({"dropout": 1.0}, "dropout=1.0 must be less than 1"),
        ({"alpha": float("nan")}, "alpha=nan must be finite"),
        ({"position": "sine"}, "must be one of sinusoid, sinusoid_paper"),
        ({"problem": " "}, "problem=' ' must not be empty"),
        ({"d_modle": 512}, "'d_modle'; did you mean 'd_model'?"),
        ({"average_last": 21}, "average_last=21 needs keep_checkpoints"),
        ({"tokens_per_batch": 255}, "holds no sentence of max_length=256"),
        ({"max_tokens_per_device": 255}, "holds no sentence of max_length=256"),
        ({"max_tokens_per_device": "all"}, "a whole number or auto, not 'all' (str)"),
        ({"xla": "yes"}, "xla must be true or false or auto, not 'yes' (str)"),
        ({"d_model": "auto"}, "d_model must be a whole number, not 'auto' (str)"),
        ({"checkpoint_minutes": 0.0}, "nothing would ever be saved"),
        (
            {"decode_length_factor": 0.0, "decode_extra_length": 0},
            "every output would be empty",
        ),
        ({"search": "marina"}, "must be one of t2t, marian, transformers"),
        (
            {"d_model": 9, "num_heads": 3, "position": "sinusoid_paper"},
            "d_model=9 must be even",
        ),
    ],
)
def test_a_bad_value_is_refused_by_name(changes, words):
    with pytest.raises(UserError) as refused:
        HParams().replace(**changes)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 100, "d_k": 16, "d_v": 16},
        {"max_tokens_per_device": 0},
        {"max_tokens_per_device": "auto", "precision": "auto", "xla": "auto"},
        {"checkpoint_minutes": 0.0, "checkpoint_steps": 100},
        {"position": "none", "num_decoder_layers": 2},
        {"d_model": 9, "num_heads": 3, "position": "sinusoid"},
        {"decode_length_factor": 3.0, "decode_extra_length": 0, "search": "marian"},
        {"decode_length_factor": 0.0, "search": "transformers"},
    ],
)
def test_an_unusual_value_is_allowed(changes):
    found = HParams().replace(**changes)
    assert {key: getattr(found, key) for key in changes} == changes


def test_what_is_auto_is_settled_once_and_what_is_given_stays():
    asked = HParams(xla=True)
    assert asked.auto_fields().keys() == {
        "max_tokens_per_device",
        "rows_multiple",
        "precision",
    }
    settled = asked.resolve_auto(
        precision="bfloat16", max_tokens_per_device=3125, xla=False
    )
    assert settled == HParams(
        max_tokens_per_device=3125, rows_multiple=1, precision="bfloat16", xla=True
    )
    assert settled.resolve_auto(precision="float16") == settled
    # Until then batches are a CPU's: seven parts of 25,000 / 7.
    assert asked.tokens_per_part == 3571
