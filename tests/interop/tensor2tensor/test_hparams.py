"""Tests of translating and rejecting tensor2tensor's hyper-parameters."""

import json

import pytest

from t2t_repro import hparams as hparam_sets
from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import (
    find_ignored,
    parse_t2t_overrides,
    read_json,
    translate_hparams,
)
from t2t_repro.system.errors import UserError

BASE = t2t_sets.load("transformer_base")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("base", "transformer_base_v1"),
        ("t2t_base", "transformer_base"),
        ("t2t_big", "transformer_big"),
    ],
)
def test_named_sets_equal_the_translated_sets_of_tensor2tensor(ours, theirs):
    expected = hparam_sets.load(ours)
    hparams = translate_hparams(t2t_sets.load(theirs), expected.vocab_size)
    # Data, batch size, duration and checkpoints are not part of tensor2tensor's sets.
    excluded = {
        "problem",
        "tokenizer",
        "num_decoder_layers",
        "tokens_per_batch",
        "max_tokens_per_device",
        "train_steps",
        "average_last",
        "checkpoint_minutes",
        "checkpoint_steps",
        "eval_steps",
        "keep_checkpoints",
    }
    for key, value in expected.to_dict().items():
        if key not in excluded:
            assert getattr(hparams, key) == value, key


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"attention_key_channels": 128}, {"key_size": 16, "value_size": 64}),
        ({"attention_value_channels": 256}, {"key_size": 64, "value_size": 32}),
        (
            {"num_encoder_layers": 3, "num_decoder_layers": 1},
            {"num_layers": 3, "num_decoder_layers": 1},
        ),
        ({"num_decoder_layers": 2}, {"num_layers": 6, "num_decoder_layers": 2}),
        (
            {"pos": "emb", "max_length": 9},
            {"position": "learned", "max_position": 9, "max_length": 9},
        ),
        ({"pos": None}, {"position": "none"}),
        ({"pos": "none"}, {"position": "none"}),
        ({"max_length": 0}, {"max_length": 4096}),
        ({"max_relative_position": 7}, {"max_relative_position": 0}),
        (
            {"self_attention_type": "dot_product_relative", "max_relative_position": 7},
            {"max_relative_position": 7},
        ),
        ({"multiply_embedding_mode": "none"}, {"scale_embeddings": False}),
        ({"vocab_divisor": 8}, {"vocab_divisor": 8, "vocab_size": 100}),
        ({"use_target_space_embedding": False}, {"target_space_embedding": False}),
        ({"shared_embedding_and_softmax_weights": 0}, {"share_embeddings": False}),
        ({"clip_grad_norm": 2.0}, {"clip_norm": 2.0}),
        ({"batch_size": 1024}, {"tokens_per_batch": 1024}),
        ({"learning_rate_schedule": "legacy"}, {"learning_rate_scale": 2.0}),
        (
            {"learning_rate_schedule": "constant*rsqrt_decay"},
            {"learning_rate_schedule": "rsqrt_decay", "learning_rate_scale": 2.0},
        ),
        # 512^0.5 cancels the factor d_model^-0.5 of the schedule "t2t".
        (
            {"learning_rate_schedule": "linear_warmup * rsqrt_decay"},
            {"learning_rate_schedule": "t2t", "learning_rate_scale": 512**0.5},
        ),
        # tensor2tensor's Transformer ignores "dropout".
        ({"dropout": 0.7, "layer_prepostprocess_dropout": 0.3}, {"dropout": 0.3}),
        ({"ffn_layer": "conv_hidden_relu"}, {"d_ff": 2048}),
    ],
)
def test_translates_a_value(changes, expected):
    hparams = translate_hparams(BASE | changes, 100)
    assert {key: getattr(hparams, key) for key in expected} == pytest.approx(expected)


def test_sets_the_target_space_and_the_search_of_t2t_decoder():
    hparams = translate_hparams(BASE, 100, target_space_id=5)
    assert (hparams.target_space_id, hparams.tokenizer) == (5, "wordpiece")
    search = hparams.beam_size, hparams.alpha, hparams.decode_extra_length
    assert search == (4, 0.6, 50)


UNSUPPORTED = {
    "self_attention_type": "local_mask_right",
    "ffn_layer": "conv_relu_conv",
    "norm_type": "noam",
    "norm_epsilon": 1e-3,
    "layer_preprocess_sequence": "na",
    "pos": "timing_from_features",
    "shared_embedding": True,
    "proximity_bias": True,
    "attention_variables_3d": True,
    "causal_decoder_self_attention": False,
    "unidirectional_encoder": True,
    "factored_logits": True,
    "prepend_mode": "prepend_inputs_full_attention",
    "hard_attention_k": 3,
    "num_area_layers": 1,
    "weight_dtype": "bfloat16",
    "symbol_modality_skip_top": True,
    "bottom": {"inputs": "x"},
    "optimizer": "Adafactor",
    "learning_rate_schedule": "constant*cosdecay",
    "weight_decay": 1e-6,
    "symbol_dropout": 0.1,
    "scheduled_sampling_prob": 0.5,
    "relu_dropout_broadcast_dims": "1",
    "use_fixed_batch_size": True,
    "a_new_feature": 3,
}


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_rejects_an_unsupported_value_by_name(key):
    with pytest.raises(UserError, match=f"{key}="):
        translate_hparams(BASE | {key: UNSUPPORTED[key]}, 100)


def test_error_lists_all_unsupported_values_in_one_line():
    with pytest.raises(UserError) as error:
        translate_hparams(BASE | UNSUPPORTED, 100)
    message = str(error.value)
    assert "\n" not in message
    for key in UNSUPPORTED:
        assert f"{key}=" in message, key


def test_rejects_key_channels_that_are_not_a_multiple_of_the_heads():
    with pytest.raises(UserError, match="num_heads=8, attention_key_channels=100"):
        translate_hparams(BASE | {"attention_key_channels": 100}, 100)


@pytest.mark.parametrize(
    "changes", [{"hidden_size": "512"}, {"num_heads": None}, {"label_smoothing": "x"}]
)
def test_rejects_a_value_of_the_wrong_type(changes):
    with pytest.raises(UserError, match=f"{next(iter(changes))}=.* type"):
        translate_hparams(BASE | changes, 100)


def test_ignores_and_reports_a_disabled_unknown_hyper_parameter():
    values = BASE | {"a_new_feature": False, "moe_k": 2, "optimizer": "adam"}
    translate_hparams(values, 100)
    assert find_ignored(values) == {"a_new_feature": False, "moe_k": 2}


def test_parses_overrides_like_tensor2tensor():
    text = "a=1, b=0.5,c=True,d=word,e=0,1,f=,g=none"
    assert parse_t2t_overrides(text) == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": "word",
        "e": "0,1",
        "f": "",
        "g": "none",
    }
    assert parse_t2t_overrides("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [("a", "'a' is not of the form"), ("a=1,a=2", "a is given twice")],
)
def test_rejects_invalid_overrides(text, message):
    with pytest.raises(UserError, match=message):
        parse_t2t_overrides(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ("7", "expected an object"),
        (json.dumps({"hidden_size": 8}), "filter_size, num_heads, num_hidden_layers"),
    ],
)
def test_rejects_a_file_that_is_not_an_hparams_json(tmp_path, text, message):
    path = tmp_path / "hparams.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_json(path)
