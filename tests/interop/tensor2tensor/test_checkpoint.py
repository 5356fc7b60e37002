"""Tests of reading and rejecting tensor2tensor checkpoints."""

import re

import numpy as np
import pytest

from t2t_repro.interop.tensor2tensor.checkpoint import T2TCheckpoint
from t2t_repro.runs.tensor_file import write_tensors
from t2t_repro.system.errors import UserError

SCOPE = "transformer/symbol_modality_5_2"
LAYER = "transformer/body/encoder/layer_0/ffn"
# One table and one kernel of a model of width 2.
SHAPES = {
    "embedding/table": (5, 2),
    "encoder/layer_0/feed_forward/hidden/kernel": (2, 3),
}
# Two shards of 5 rows have 3 and 2 rows (modalities.py:get_weights).
VARIABLES = {
    f"{SCOPE}/shared/weights_0": np.arange(6, dtype=np.float32).reshape(3, 2),
    f"{SCOPE}/shared/weights_1": np.arange(6, 10, dtype=np.float32).reshape(2, 2),
    f"{LAYER}/conv1/kernel": np.full((2, 3), 7, np.float32),
}
BETAS = {"beta1": 0.5, "beta2": 0.25}


def slots():
    """Returns first and second moments: the variables plus 100 and plus 200."""
    return {
        f"training/{name}/{slot}": value + np.float32(offset)
        for slot, offset in (("Adam", 100), ("Adam_1", 200))
        for name, value in VARIABLES.items()
    }


# After 3 steps the powers are beta^4.
STATE = {
    "global_step": np.int64(3),
    "training/beta1_power": np.float32(0.5**4),
    "training/beta2_power": np.float32(0.25**4),
}


def checkpoint(folder, variables, name="model.ckpt-3"):
    write_tensors(folder / name, variables)
    return T2TCheckpoint(folder / name)


def test_unused_variables_are_reported_by_category(tmp_path):
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
    _, reason = source.moments(SHAPES, "post", BETAS)
    assert reason == ""
    assert source.unused() == {
        "statistics": [
            "losses_avg/problem_0/total_loss",
            "train_stats/problem_0_steps",
        ],
        "optimizer": ["training/something"],
        "unknown": ["elsewhere"],
    }


def test_reads_weights_and_moments(tmp_path):
    source = checkpoint(tmp_path, VARIABLES | slots() | STATE)
    table = np.arange(10).reshape(5, 2)
    weights = source.weights(SHAPES, "post")
    np.testing.assert_array_equal(weights["embedding/table"], table)
    moments, reason = source.moments(SHAPES, "post", BETAS)
    assert (reason, source.step()) == ("", 3)
    np.testing.assert_array_equal(moments["m/embedding/table"], table + 100)
    np.testing.assert_array_equal(moments["v/embedding/table"], table + 200)
    assert len(moments) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict.fromkeys(slots()), "contains no moments"),
        ({f"training/{LAYER}/conv1/kernel/Adam_1": None}, "contains 5 of 6 moments"),
        # avg_checkpoints.py sets the step to 0.
        ({"global_step": np.int64(0)}, r"beta1_power is 0.0625, not 0.5\^1"),
        ({"training/beta2_power": np.float32(0.25)}, r"beta2_power is 0.25, not 0"),
    ],
)
def test_unusable_moments_are_ignored_with_a_reason(tmp_path, changes, message):
    variables = VARIABLES | slots() | STATE | changes
    variables = {k: v for k, v in variables.items() if v is not None}
    moments, reason = checkpoint(tmp_path, variables).moments(SHAPES, "post", BETAS)
    assert re.search(message, reason)
    assert moments == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({f"{LAYER}/conv1/kernel": None}, "lacks .*layer_0/ffn/conv1/kernel; give"),
        ({f"{LAYER}/conv1/bias": np.zeros(3)}, "has unexpected arrays .*conv1/bias"),
        (
            {f"{SCOPE}/shared/weights_0": None},
            "has unexpected arrays .*shared/weights_1",
        ),
        (
            {f"{LAYER}/conv1/kernel": np.zeros((2, 4), np.float32)},
            r"conv1/kernel has the shape \(2, 4\), but the settings require \(2, 3\)",
        ),
    ],
)
def test_rejects_a_checkpoint_of_a_different_model(tmp_path, changes, message):
    variables = {k: v for k, v in (VARIABLES | changes).items() if v is not None}
    with pytest.raises(UserError, match=message):
        checkpoint(tmp_path, variables).weights(SHAPES, "post")


def test_error_names_a_missing_shard(tmp_path):
    shards = {n: np.zeros((2, 2), np.float32) for n in (0, 2)}
    variables = {f"{SCOPE}/shared/weights_{n}": v for n, v in shards.items()}
    kernel = f"{LAYER}/conv1/kernel"
    variables[kernel] = VARIABLES[kernel]
    with pytest.raises(UserError, match=r"lacks .*weights_1 and has .*weights_2"):
        checkpoint(tmp_path, variables).weights(SHAPES, "post")


def test_rejects_float16(tmp_path):
    halves = {k: v.astype(np.float16) for k, v in VARIABLES.items()}
    with pytest.raises(UserError, match="the dtype float16, but only float32 can be"):
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
def test_accepts_tables_of_the_expected_sizes(tmp_path, variables, arguments):
    checkpoint(tmp_path, variables).check_tables(*arguments)


@pytest.mark.parametrize(
    ("variables", "arguments", "message"),
    [
        (table(5, "shared"), (4, 4, 2, True), "5 subwords, but --vocab_file has 4;"),
        (table(5, "shared"), (4, 8, 2, True), r"has 4 \(padded to 8\)"),
        (table(5, "shared"), (5, 5, 3, True), "width 2, but hidden_size is 3"),
        (table(5, "shared"), (5, 5, 2, False), "has one table for .* is false"),
        (UNTIED, (5, 5, 2, True), "has separate tables for .* is true"),
        (
            UNTIED | table(7, "target_emb"),
            (5, 5, 2, False),
            "vocabularies of 5, 7 subwords .* only models with one vocabulary",
        ),
        ({"lstm/kernel": np.zeros(1)}, (5, 5, 2, True), "variables begin with lstm"),
        (
            {"model/kernel/.ATTRIBUTES/VARIABLE_VALUE": np.zeros(1)},
            (5, 5, 2, True),
            "OpenNMT-tf with python -m t2t_repro.import_opennmt",
        ),
    ],
)
def test_rejects_tables_of_other_sizes(tmp_path, variables, arguments, message):
    with pytest.raises(UserError, match=message):
        checkpoint(tmp_path, variables).check_tables(*arguments)
