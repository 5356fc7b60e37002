"""Tests of the named sets against tensor2tensor's registry."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import translate_hparams
from t2t_repro.system.errors import UserError
from t2t_repro.training.schedules import Schedule
from tests import golden

# Output of tensor2tensor 1.15.7's registry; the file names its source.
REGISTRY = json.loads(
    (Path(__file__).parents[2] / "data/golden/t2t_hparams_sets.json").read_text("utf-8")
)["sets"]


@pytest.mark.parametrize("name", t2t_sets.names())
def test_every_value_equals_the_registry(name):
    theirs = REGISTRY["transformer_base_v1"] | REGISTRY[name]
    ours = t2t_sets.load(name)
    assert ours == {key: theirs[key] for key in ours}
    # Hyper-parameters missing from sets.yaml have the value of the oldest set.
    for key in theirs.keys() - ours.keys():
        assert theirs[key] == REGISTRY["transformer_base_v1"][key], key


@pytest.mark.parametrize(
    "name",
    [
        "transformer_base_v1",
        "transformer_base_v2",
        "transformer_base",
        "transformer_big",
        "transformer_big_single_gpu",
        "transformer_base_single_gpu",
        "transformer_parsing_base",
        "transformer_parsing_big",
        "transformer_tiny",
        "transformer_tpu",
    ],
)
def test_learning_rates_of_a_set_equal_tensor2tensor(shared_dir, name):
    arrays = golden.load(shared_dir / "t2t/golden/misc.npz")
    # Replace the unsupported settings of transformer_tpu, which do not affect the rate.
    values = t2t_sets.load(name) | {"optimizer": "adam"}
    values = {k: v for k, v in values.items() if not k.endswith("_broadcast_dims")}
    hparams = translate_hparams(values, 37_000)
    schedule = Schedule.from_hparams(hparams)
    rates = [float(schedule(tf.constant(int(n)))) for n in arrays["lr/steps"]]
    np.testing.assert_allclose(rates, arrays[f"lr/{name}"], rtol=1e-6)


def test_error_for_an_unknown_set_suggests_a_similar_name():
    with pytest.raises(UserError, match=r"unknown set.* 'transformer_base_v2'"):
        t2t_sets.load("transformer_basev2")
