"""Tests of the changes that a resumed training can accept."""

from functools import cache

import numpy as np
import pytest

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.runs.run_metadata import check_accepted
from t2t_repro.system.errors import UserError

SMALL = HParams(d_model=8, d_ff=12, num_heads=2, num_layers=1)
# For each hyper-parameter that changes the model's function: another value, and the
# settings without which it would have no effect.
FUNCTION_CHANGES = [
    ({"d_model": 16}, {}),
    ({"d_ff": 16}, {}),
    ({"num_heads": 4}, {}),
    ({"d_k": 3}, {}),
    ({"d_v": 3}, {}),
    ({"num_layers": 2}, {"num_decoder_layers": 1}),
    ({"num_decoder_layers": 2}, {}),
    ({"norm": "pre"}, {}),
    ({"max_relative_position": 2}, {}),
    ({"self_attention_radius": 1}, {}),
    ({"position": "sinusoid_paper"}, {}),
    ({"max_position": 64}, {"position": "learned"}),
    ({"share_embeddings": False}, {}),
    ({"tie_target": True}, {"share_embeddings": False}),
    ({"softmax_bias": True}, {}),
    ({"start_symbol": 2}, {}),
    ({"source_end": False}, {}),
    ({"decoder_d_ff": 16}, {}),
    ({"activation": "swish"}, {}),
    ({"attention_bias": True}, {}),
    ({"norm_epsilon": 0.1}, {}),
    ({"scale_embeddings": False}, {}),
    ({"vocab_divisor": 16}, {}),
    ({"target_space_embedding": False}, {}),
    ({"target_space_id": 1}, {}),
]


@cache
def function(hparams):
    """Returns the shapes of a model's weights, and its logits for fixed weights."""
    model = build_model(hparams, 21)
    variables = named_variables(model)
    for name, variable in sorted(variables.items()):
        generator = np.random.default_rng(sum(name.encode()))
        variable.assign(generator.normal(size=variable.shape))
    pair = {"inputs": np.array([[5, 6, 7, 1]]), "targets": np.array([[8, 9, 3, 1]])}
    logits = model(pair)
    return {n: tuple(v.shape) for n, v in variables.items()}, np.asarray(logits)


def differ(one, other):
    return one[0] != other[0] or not np.allclose(one[1], other[1], atol=1e-5)


@pytest.mark.parametrize(("change", "where"), FUNCTION_CHANGES, ids=str)
def test_function_hyper_parameters_change_the_function(change, where):
    before = SMALL.replace(**where)
    assert differ(function(before), function(before.replace(**change)))


def test_other_hyper_parameters_do_not_change_the_function():
    of_function = fields_that_change("function")
    changed = {name for change, _ in FUNCTION_CHANGES for name in change}
    # These determine the vocabulary, not the model.
    assert of_function == changed | {"tokenizer", "vocab_size", "share_vocab"}
    changes = {
        name: not value
        if isinstance(value, bool)
        else value * 0.9 + 0.01
        if isinstance(value, float)
        else value + 1
        for name, value in SMALL.to_dict().items()
        if name not in of_function and not isinstance(value, str | None)
    }
    changes |= {"problem": "files", "batching": "sorted", "precision": "bfloat16"}
    changes |= {"learning_rate_schedule": "t2t", "max_tokens_per_device": 5000}
    changes |= {"max_shapes": 16, "rows_multiple": 8, "xla": True, "search": "marian"}
    changes |= {"normalization": "nfkc", "whole_symbols": "<br>"}
    changes |= {"character_coverage": 0.99, "optimizer": "adafactor"}
    # Early stopping excludes a weight average.
    changes |= {"validation_metric": "chrf", "ema_decay": 0.0}
    changes |= {"label_smoothing_form": "marian", "data_dir": "a:1,b:3", "freeze": "a"}
    assert changes.keys() | of_function == SMALL.to_dict().keys()
    other = SMALL.replace(**changes)
    assert not differ(function(SMALL), function(other))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["dropuot"], "dropuot: unknown name; did you mean 'dropout'"),
        (["vocab_size"], "the weights depend on vocab_size"),
    ],
)
def test_rejects_changes_that_cannot_be_accepted(names, words):
    with pytest.raises(UserError, match=words):
        check_accepted(["data", *names])
