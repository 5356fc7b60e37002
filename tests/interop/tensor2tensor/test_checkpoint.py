"""A tensor2tensor checkpoint is found, sorted and read, or refused in a line."""

import re

import numpy as np
import pytest

from t2t_repro.interop.tensor2tensor.checkpoint import T2TCheckpoint
from t2t_repro.runs.checkpoints import write_tensors
from t2t_repro.system.errors import UserError

SCOPE = "transformer/symbol_modality_5_2"
LAYER = "transformer/body/encoder/layer_0/ffn"
# Ours: one table and one kernel of a model of width 2.
SHAPES = {
    "embedding/table": (5, 2),
    "encoder/layer_0/feed_forward/hidden/kernel": (2, 3),
}
# 5 rows in 2 shards are 3 and 2 (modalities.py:get_weights).
VARIABLES = {
    f"{SCOPE}/shared/weights_0": np.arange(6, dtype=np.float32).reshape(3, 2),
    f"{SCOPE}/shared/weights_1": np.arange(6, 10, dtype=np.float32).reshape(2, 2),
    f"{LAYER}/conv1/kernel": np.full((2, 3), 7, np.float32),
}
BETAS = {"beta1": 0.5, "beta2": 0.25}


def slots():
    """Moments that are the variables plus 100 and plus 200."""
    return {
        f"training/{name}/{slot}": value + np.float32(more)
        for slot, more in (("Adam", 100), ("Adam_1", 200))
        for name, value in VARIABLES.items()
    }


# After 3 updates the powers are beta^4.
STATE = {
    "global_step": np.int64(3),
    "training/beta1_power": np.float32(0.5**4),
    "training/beta2_power": np.float32(0.25**4),
}


def checkpoint(folder, variables, name="model.ckpt-3"):
    write_tensors(folder / name, variables)
    return T2TCheckpoint(folder / name)


def test_every_variable_is_sorted_by_what_it_is_for(tmp_path):
    others = {
        "losses_avg/problem_0/total_loss": np.float32(1),
        "train_stats/problem_0_steps": np.int32(3),
        "training/something": np.float32(0),
        "elsewhere": np.float32(0),
    }
    source = checkpoint(tmp_path, VARIABLES | slots() | STATE | others)
    source.weights(SHAPES, "post")
    assert source.store.used == len(VARIABLES)
    assert source.unused()["Adam's moments"] == sorted(slots())
    _, missing = source.moments(SHAPES, "post", BETAS)
    assert missing == ""
    assert source.unused() == {
        "statistics": [
            "losses_avg/problem_0/total_loss",
            "train_stats/problem_0_steps",
        ],
        "optimizer": ["training/something"],
        "unknown": ["elsewhere"],
    }


def test_weights_and_moments_are_read_by_our_names(tmp_path):
    source = checkpoint(tmp_path, VARIABLES | slots() | STATE)
    table = np.arange(10).reshape(5, 2)
    weights = source.weights(SHAPES, "post")
    np.testing.assert_array_equal(weights["embedding/table"], table)
    moments, missing = source.moments(SHAPES, "post", BETAS)
    assert (missing, source.step()) == ("", 3)
    np.testing.assert_array_equal(moments["m/embedding/table"], table + 100)
    np.testing.assert_array_equal(moments["v/embedding/table"], table + 200)
    assert len(moments) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict.fromkeys(slots()), "holds none"),
        ({f"training/{LAYER}/conv1/kernel/Adam_1": None}, "holds 5 of 6 moments"),
        # As in an average by avg_checkpoints.py, whose step is 0.
        ({"global_step": np.int64(0)}, r"beta1_power is 0.0625, not 0.5\^1"),
        ({"training/beta2_power": np.float32(0.25)}, r"beta2_power is 0.25, not 0"),
    ],
)
def test_moments_that_cannot_be_used_are_left_and_it_is_said_why(
    tmp_path, changes, words
):
    variables = VARIABLES | slots() | STATE | changes
    there = {k: v for k, v in variables.items() if v is not None}
    moments, missing = checkpoint(tmp_path, there).moments(SHAPES, "post", BETAS)
    assert re.search(words, missing)
    assert moments == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({f"{LAYER}/conv1/kernel": None}, "lacks .*layer_0/ffn/conv1/kernel: it is of"),
        ({f"{LAYER}/conv1/bias": np.zeros(3)}, "has .*conv1/bias besides"),
        ({f"{SCOPE}/shared/weights_0": None}, "has .*shared/weights_1 besides"),
        (
            {f"{LAYER}/conv1/kernel": np.zeros((2, 4), np.float32)},
            r"conv1/kernel has the shape \(2, 4\), but the settings ask for \(2, 3\)",
        ),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path, changes, words):
    variables = {k: v for k, v in (VARIABLES | changes).items() if v is not None}
    with pytest.raises(UserError, match=words):
        checkpoint(tmp_path, variables).weights(SHAPES, "post")


def test_a_shard_that_is_missing_in_the_middle_is_named(tmp_path):
    shards = {n: np.zeros((2, 2), np.float32) for n in (0, 2)}
    variables = {f"{SCOPE}/shared/weights_{n}": v for n, v in shards.items()}
    kernel = f"{LAYER}/conv1/kernel"
    variables[kernel] = VARIABLES[kernel]
    with pytest.raises(UserError, match=r"lacks .*weights_1 and has .*weights_2"):
        checkpoint(tmp_path, variables).weights(SHAPES, "post")


def test_halves_of_floats_are_refused(tmp_path):
    halves = {k: v.astype(np.float16) for k, v in VARIABLES.items()}
    with pytest.raises(UserError, match="holds float16, but only float32 can be"):
        checkpoint(tmp_path, halves).weights(SHAPES, "post")


def table(size, scope, width=2):
    name = f"transformer/symbol_modality_{size}_{width}/{scope}/weights_0"
    return {name: np.zeros((size, width), np.float32)}


UNTIED = table(5, "input_emb") | table(5, "target_emb") | table(5, "softmax")


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        (table(5, "shared"), (5, 5, 2, True)),
        (table(8, "shared"), (5, 8, 2, True)),
        (UNTIED, (5, 5, 2, False)),
    ],
)
def test_tables_that_fit_are_accepted(tmp_path, variables, arguments):
    checkpoint(tmp_path, variables).check_tables(*arguments)


@pytest.mark.parametrize(
    ("variables", "arguments", "words"),
    [
        (table(5, "shared"), (4, 4, 2, True), "5 subwords, but --vocab_file has 4;"),
        (table(5, "shared"), (4, 8, 2, True), r"has 4 \(padded to 8\)"),
        (table(5, "shared"), (5, 5, 3, True), "width 2, but hidden_size is 3"),
        (table(5, "shared"), (5, 5, 2, False), "has one table for .* is false"),
        (UNTIED, (5, 5, 2, True), "has separate tables for .* is true"),
        (
            UNTIED | table(7, "target_emb"),
            (5, 5, 2, False),
            "vocabularies of 5, 7 subwords for source and target; .* one for both",
        ),
        ({"lstm/kernel": np.zeros(1)}, (5, 5, 2, True), "variables begin with lstm"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, variables, arguments, words):
    with pytest.raises(UserError, match=words):
        checkpoint(tmp_path, variables).check_tables(*arguments)
