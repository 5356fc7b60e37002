"""Tests of the state that a resumed training needs."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training.restoring import restore_newest


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("vr/w", "optimizer"),
        ("ema/w", "ema_decay"),
        ("ema_weight", "ema_decay"),
        ("loss_scale", "precision"),
        ("m/other", "freeze"),
    ],
)
def test_names_the_setting_whose_state_differs(tmp_path, name, setting):
    """Only the checkpoint or only the training has this state; none is restored."""
    weights, small = {"w": np.ones(2, "float32")}, {"m/w": np.ones(2, "float32")}
    large = small | {name: np.ones(1, "float32")}
    for step, (saved, expected) in enumerate([(large, small), (small, large)], 1):
        folder = tmp_path / str(step)
        checkpoints.save(folder, step, weights, saved)
        variables = {key: tf.Variable(value * 0) for key, value in expected.items()}
        with pytest.raises(UserError, match=f"of a training with another {setting},"):
            restore_newest(folder, {"w": tf.Variable([0.0, 0.0])}, variables, print)
        assert not any(variable.numpy().any() for variable in variables.values())
        assert [c.step for c in checkpoints.list_checkpoints(folder)] == [step]
