"""Tests of checkpoint averaging."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.averaging import average_checkpoints, mean, write_moving_average
from t2t_repro.system.errors import UserError
from tests.training import toy


def test_average_equals_that_of_tensor2tensor(shared_dir):
    folder = shared_dir / "t2t/golden/avg_ckpts"
    parts = [
        tf.train.load_checkpoint(str(folder / f"model.ckpt-{step}"))
        for step in (1000, 2000, 3000)
    ]
    averaged = tf.train.load_checkpoint(str(folder / "averaged.ckpt-0"))
    names = set(averaged.get_variable_to_shape_map()) - {"global_step"}
    assert len(names) > 100
    for name in names:
        ours = mean(part.get_tensor(name) for part in parts)
        theirs = averaged.get_tensor(name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, err_msg=name)


def test_accumulates_in_float64():
    # In float32, 2^24 + 1 equals 2^24.
    arrays = [np.array([x], "float32") for x in (2.0**24, 1, 1, -(2.0**24))]
    average = mean(iter(arrays))
    assert average == [0.5]
    assert average.dtype == "float32"


def test_mean_of_one_array_and_of_none():
    np.testing.assert_array_equal(mean([np.array([0.1], "float32")]), np.float32(0.1))
    with pytest.raises(ValueError, match="at least one array"):
        mean([])


def test_mean_does_not_change_its_inputs():
    arrays = [np.ones(2, "float64"), np.zeros(2, "float64")]
    mean(arrays)
    np.testing.assert_array_equal(arrays[0], [1, 1])


def test_an_averaged_checkpoint_loads_into_a_model(tmp_path):
    models = [toy.model(toy.HPARAMS.replace(seed=seed)) for seed in (1, 2, 3)]
    saved = [
        checkpoints.save(tmp_path / "checkpoints", 10 * step, named_variables(model))
        for step, model in enumerate(models, 1)
    ]
    averaged = average_checkpoints(saved, tmp_path / "averaged")
    assert averaged.step == 30
    assert averaged.meta()["averaged_steps"] == [10, 20, 30]
    assert not averaged.has_optimizer
    fresh = toy.model(toy.HPARAMS.replace(seed=4))
    averaged.tensors().assign(named_variables(fresh))
    for name, variable in named_variables(fresh).items():
        parts = [named_variables(model)[name].numpy() for model in models]
        expected = np.mean(np.array(parts, "float64"), axis=0)
        np.testing.assert_allclose(
            variable.numpy(), expected, rtol=1e-6, atol=1e-9, err_msg=name
        )


@pytest.mark.parametrize(("data", "expected"), [("AA", "A"), ("AB", None)])
def test_an_average_has_the_data_of_its_checkpoints(tmp_path, data, expected):
    saved = [
        checkpoints.save(tmp_path, step, {"w": np.zeros(1)}, meta={"data": one})
        for step, one in enumerate(data)
    ]
    assert average_checkpoints(saved, tmp_path / "averaged").data == expected


def test_a_new_average_replaces_the_old_one(tmp_path):
    saved = [
        checkpoints.save(tmp_path, step, {"w": np.array([step], "float32")})
        for step in (2, 4, 9)
    ]
    average_checkpoints(saved[:2], tmp_path / "averaged")
    averaged = average_checkpoints(saved[1:], tmp_path / "averaged")
    assert averaged.tensors().read("w") == [6.5]


@pytest.mark.parametrize(
    "other",
    [
        {"w": np.zeros([3])},
        {"v": np.zeros([2])},
        {"w": np.zeros([2]), "v": np.zeros([2])},
    ],
)
def test_rejects_checkpoints_of_different_models(tmp_path, other):
    saved = [
        checkpoints.save(tmp_path, 1, {"w": np.zeros([2])}),
        checkpoints.save(tmp_path, 2, other),
    ]
    with pytest.raises(UserError, match=r"step-00000002.*step-00000001.*different"):
        average_checkpoints(saved, tmp_path / "averaged")
    assert not (tmp_path / "averaged").exists()


def test_writes_the_moving_average_of_a_training_state(tmp_path):
    weights = {"w": np.array([9], "float32")}
    state = {"m/w": np.zeros(1), "ema/w": np.array([3.0]), "ema_weight": np.array(0.75)}
    saved = checkpoints.save(tmp_path, 6, weights, state, {"data": "A"})
    average = write_moving_average(saved, tmp_path / "averaged")
    assert average.tensors().shapes() == {"w": (1,)}
    assert average.tensors().read("w") == [4.0]
    assert average.meta() == {"step": 6, "averaged_steps": [6], "data": "A"}


def test_rejects_a_training_state_without_a_moving_average(tmp_path):
    saved = checkpoints.save(tmp_path, 6, {"w": np.ones(1)}, {"m/w": np.ones(1)})
    with pytest.raises(UserError, match="step-00000006 has no moving average"):
        write_moving_average(saved, tmp_path / "averaged")
    assert not (tmp_path / "averaged").exists()
