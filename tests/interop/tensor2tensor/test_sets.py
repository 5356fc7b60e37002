"""The named sets are those of tensor2tensor's registry."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import to_hparams
from t2t_repro.system.errors import UserError
from t2t_repro.training.schedules import Schedule
from tests import golden

# What tensor2tensor 1.15.7's registry returned; the file names its source.
REGISTRY = json.loads(
    (Path(__file__).parents[2] / "data/golden/t2t_hparams_sets.json").read_text("utf-8")
)["sets"]


@pytest.mark.parametrize("name", t2t_sets.names())
def test_every_value_is_the_registrys(name):
    theirs = REGISTRY["transformer_base_v1"] | REGISTRY[name]
    ours = t2t_sets.load(name)
    assert ours == {key: theirs[key] for key in ours}
    # What is not listed has the value that the first set has.
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
def test_the_learning_rates_of_a_set_are_tensor2tensors(shared_dir, name):
    arrays = golden.load(shared_dir / "t2t/golden/misc.npz")
    # The rate does not depend on what transformer_tpu has besides and we have not.
    values = t2t_sets.load(name) | {"optimizer": "adam"}
    values = {k: v for k, v in values.items() if not k.endswith("_broadcast_dims")}
    hparams = to_hparams(values, 37_000)
    schedule = Schedule(
        hparams.learning_rate_schedule,
        hparams.d_model,
        hparams.warmup_steps,
        hparams.learning_rate_scale,
    )
    rates = [float(schedule(tf.constant(int(n)))) for n in arrays["lr/steps"]]
    np.testing.assert_allclose(rates, arrays[f"lr/{name}"], rtol=1e-6)


def test_an_unknown_set_is_refused_and_the_nearest_named():
    with pytest.raises(UserError, match=r"no such set .* 'transformer_base_v2'"):
        t2t_sets.load("transformer_basev2")
