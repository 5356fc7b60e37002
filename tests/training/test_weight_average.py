"""Tests of the moving average of the weights."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.runs import checkpoints
from t2t_repro.runs.averaging import write_moving_average
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.training.selection import select_checkpoints
from t2t_repro.training.weight_average import WeightAverage

VALUES = (2.0, -1.0, 4.0, 0.5)


def test_average_is_the_weighted_mean_of_the_weights_after_each_step(tmp_path):
    x = keras.Variable(np.zeros((2, 3)), dtype="float32")
    average = WeightAverage({"x": x}, 0.75)
    for value in VALUES:
        x.assign(np.full((2, 3), value))
        average.update()
        # A skipped step adds nothing.
        average.update(tf.constant(False))
    checkpoint = checkpoints.save(tmp_path, 4, {"x": x}, average.state())
    written = write_moving_average(checkpoint, tmp_path / "averaged")
    weights = 0.75 ** np.arange(len(VALUES))[::-1]
    expected = np.average(VALUES, weights=weights)
    np.testing.assert_allclose(
        written.tensors().read("x"), np.full((2, 3), expected), rtol=1e-6
    )
    assert written.meta()["averaged_steps"] == [4]


@pytest.mark.parametrize(("decay", "steps"), [(0.9, [6]), (0.0, [4, 6])])
def test_moving_average_is_that_of_the_last_checkpoint(tmp_path, decay, steps):
    model_dir = ModelDir(tmp_path)
    for step in (2, 4, 6):
        checkpoints.save(model_dir.checkpoint_dir, step, {"w": np.zeros(1, "float32")})
    hparams = HParams(ema_decay=decay, average_last=2)
    run = SimpleNamespace(model_dir=model_dir, hparams=hparams, guard=None)
    assert [each.step for each in select_checkpoints(run)] == steps


def test_no_decay_has_no_state_and_no_average(tmp_path):
    x = keras.Variable([1.0], dtype="float32")
    average = WeightAverage({"x": x}, 0.0)
    average.update()
    assert average.state() == {}
    checkpoint = checkpoints.save(tmp_path, 4, {"x": x}, {"m/x": x})
    with pytest.raises(UserError, match="has no moving average"):
        write_moving_average(checkpoint, tmp_path / "averaged")
