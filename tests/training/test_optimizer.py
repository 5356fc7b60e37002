"""Tests of Adam against the formula and Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.optimizer import Adam

RATES = [0.1, 0.02, 0.3]


def variables():
    values = {
        "kernel": np.array([[1.0, -2.0], [0.5, 0.0]]),
        "scale": np.array([1.0, 3.0]),
    }
    return {
        name: keras.Variable(value, dtype="float32") for name, value in values.items()
    }


def gradients(step):
    rng = np.random.default_rng(step)
    return [
        tf.constant(rng.normal(size=(2, 2)), tf.float32),
        tf.constant(rng.normal(size=2), tf.float32),
    ]


def train(epsilon):
    ours = variables()
    adam = Adam(ours, 0.9, 0.98, epsilon)
    for step, rate in enumerate(RATES):
        adam.apply(gradients(step), tf.constant(step), tf.constant(rate))
    return {name: v.numpy() for name, v in ours.items()}, adam.state()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-2])
def test_three_steps_equal_the_formula(epsilon):
    """Epsilon is added to the root, without bias correction."""
    ours, state = train(epsilon)
    for index, (name, start) in enumerate(variables().items()):
        x, m, v = start.numpy().astype("float64"), 0.0, 0.0
        for step, rate in enumerate(RATES):
            g = np.array(gradients(step)[index], "float64")
            m = 0.9 * m + 0.1 * g
            v = 0.98 * v + 0.02 * g**2
            corrected = rate * np.sqrt(1 - 0.98 ** (step + 1)) / (1 - 0.9 ** (step + 1))
            x = x - corrected * m / (np.sqrt(v) + epsilon)
        np.testing.assert_allclose(ours[name], x, atol=1e-6)
        np.testing.assert_allclose(state[f"m/{name}"], m, atol=1e-6)
        np.testing.assert_allclose(state[f"v/{name}"], v, atol=1e-6)


def test_rate_zero_updates_only_the_moments():
    ours = variables()
    adam = Adam(ours, 0.9, 0.98, 1e-9)
    adam.apply(gradients(0), tf.constant(0), tf.constant(0.0))
    for name, start in variables().items():
        np.testing.assert_array_equal(ours[name].numpy(), start.numpy())
        assert np.all(adam.state()[f"m/{name}"].numpy() != 0)


def test_state_has_both_moments_of_every_variable():
    _, state = train(1e-9)
    assert list(state) == ["m/kernel", "v/kernel", "m/scale", "v/scale"]
