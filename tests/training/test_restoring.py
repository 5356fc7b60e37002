"""Tests of the state that a resumed training needs."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training.restoring import Progress, restore_newest


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


def test_a_checkpoint_that_the_disk_returns_at_the_second_attempt_is_not_damaged(
    tmp_path, monkeypatch
):
    saved = {"w": np.ones(2, "float32")}
    checkpoints.save(tmp_path, 1, saved, saved)
    weight, moment = tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0])
    lines, restore = [], tf.raw_ops.RestoreV2

    def fail_once(**_):
        monkeypatch.setattr(tf.raw_ops, "RestoreV2", restore)
        raise tf.errors.ResourceExhaustedError(None, None, "no space left on device")

    monkeypatch.setattr(tf.raw_ops, "RestoreV2", fail_once)
    progress = restore_newest(tmp_path, {"w": weight}, {"w": moment}, lines.append)
    assert progress == Progress(step=1)  # Its checkpoint.json has no other values.
    assert weight.numpy().tolist() == moment.numpy().tolist() == [1.0, 1.0]
    assert not lines
