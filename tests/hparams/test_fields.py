"""Hyper-parameters are immutable, typed and within their limits."""

from __future__ import annotations

import dataclasses

import pytest

from t2t_repro import hparams
from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import get_rule
from t2t_repro.system.errors import UserError


def test_set_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        HParams().d_model = 256  # type: ignore[misc]


def test_every_field_has_a_description_and_a_source():
    for field in dataclasses.fields(HParams):
        rule = get_rule(field)
        assert rule.doc.endswith("."), field.name
        assert rule.source, field.name


def test_int_is_converted_for_a_float_field():
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
        ({"average_last": 21}, "average_last=21 exceeds keep_checkpoints=20"),
        ({"tokens_per_batch": 255}, "=255 is less than max_length=256"),
        ({"max_tokens_per_device": 255}, "=255 is less than max_length=256"),
        (
            {"batching": "packed", "max_tokens_per_device": 255},
            "=255 is less than packed_length=256, so a row",
        ),
        (
            {"batching": "packed", "source_end": False},
            "batching=packed needs source_end=true",
        ),
        ({"max_tokens_per_device": "all"}, "a whole number or auto, not 'all' (str)"),
        ({"xla": "yes"}, "xla must be true or false or auto, not 'yes' (str)"),
        ({"d_model": "auto"}, "d_model must be a whole number, not 'auto' (str)"),
        ({"checkpoint_minutes": 0.0}, "no checkpoint would be saved"),
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
def test_rejects_an_invalid_value_by_name(changes, words):
    with pytest.raises(UserError) as raised:
        HParams().replace(**changes)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"d_model": 100, "d_k": 16, "d_v": 16},
        {"max_tokens_per_device": 0},
        {"batching": "packed", "max_length": 300, "max_tokens_per_device": 256},
        {"packed_length": 30_000},
        {"max_tokens_per_device": "auto", "precision": "auto", "xla": "auto"},
        {"checkpoint_minutes": 0.0, "checkpoint_steps": 100},
        {"position": "none", "num_decoder_layers": 2},
        {"d_model": 9, "num_heads": 3, "position": "sinusoid"},
        {"decode_length_factor": 3.0, "decode_extra_length": 0, "search": "marian"},
        {"decode_length_factor": 0.0, "search": "transformers"},
    ],
)
def test_accepts_unusual_values(changes):
    hparams = HParams().replace(**changes)
    assert {key: getattr(hparams, key) for key in changes} == changes


def test_auto_is_resolved_once_and_explicit_values_are_kept():
    hparams = HParams(xla=True)
    assert hparams.auto_fields().keys() == {
        "max_shapes",
        "max_tokens_per_device",
        "rows_multiple",
        "precision",
    }
    resolved = hparams.resolve_auto(
        precision="bfloat16", max_tokens_per_device=3125, xla=False
    )
    assert resolved == HParams(
        max_shapes=48,
        max_tokens_per_device=3125,
        rows_multiple=1,
        precision="bfloat16",
        xla=True,
    )
    assert resolved.resolve_auto(precision="float16") == resolved
    # Before "auto" is resolved, the CPU default applies: seven micro-batches of up to
    # 25,000 / 7 positions.
    assert hparams.tokens_per_microbatch == 3571


def test_all_mistakes_are_reported_with_names_of_other_systems():
    words = "'batch_size'; did you mean 'tokens_per_batch'.*'wamup_steps'; did you mean"
    with pytest.raises(UserError, match=f"d_k=0 must be at least 1; .*{words}"):
        hparams.load("base,batch_size=32,wamup_steps=2,d_k=0")


def test_names_of_other_systems_stand_for_fields():
    names = {field.name for field in dataclasses.fields(HParams)}
    assert set(HParams.other_names.values()) <= names
    assert not names & HParams.other_names.keys()
