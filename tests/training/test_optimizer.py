"""Tests of Adam and Adafactor against the formulas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.training.optimizer import Adafactor, Adam

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


def t2t_adafactor(shapes, steps):
    """Computes Adafactor in float64 as in tensor2tensor's docstring.

    It has `v = outer_prod(v_r, v_c) / reduce_mean(v_r)`, the parameter scale
    `max(rms(x), 1e-3)` and `clip(u) = u / max(1, rms(u))`.
    """

    def rms(x):
        return np.sqrt(np.mean(x**2))

    results = {}
    for index, (name, x) in enumerate(shapes.items()):
        x, moments = x.astype("float64"), [0.0, 0.0]
        for step in range(steps):
            g = np.array(gradients(step)[index], "float64")
            squared, decay = g**2 + 1e-30, 1 - (step + 1.0) ** -0.8
            means = [squared]
            if x.ndim == 2:
                means = [squared.mean(axis=1), squared.mean(axis=0)]
            moments = [
                decay * old + (1 - decay) * new
                for old, new in zip(moments, means, strict=False)
            ]
            v = moments[0]
            if x.ndim == 2:
                v = np.outer(*moments) / moments[0].mean()
            u = g / np.sqrt(v)
            x = x - RATES[step] * max(rms(x), 1e-3) * u / max(1, rms(u))
        results[name] = x, moments
    return results


def train_adafactor(ours, steps=range(3), enabled=True):
    """Returns the state after the given steps."""
    optimizer = Adafactor(ours)
    for step in steps:
        optimizer.apply(
            gradients(step), tf.constant(step), tf.constant(RATES[step]), enabled
        )
    return optimizer.state()


def test_three_steps_of_adafactor_equal_tensor2tensors_formula():
    ours = variables()
    state = train_adafactor(ours)
    expected = t2t_adafactor({name: v.numpy() for name, v in variables().items()}, 3)
    assert list(state) == ["vr/kernel", "vc/kernel", "v/scale"]
    for name, (x, _) in expected.items():
        np.testing.assert_allclose(ours[name].numpy(), x, atol=1e-6)
    moments = [*expected["kernel"][1], *expected["scale"][1]]
    for value, moment in zip(state.values(), moments, strict=True):
        np.testing.assert_allclose(value.numpy(), moment, rtol=1e-6)


def test_adafactor_clips_an_update_that_is_larger_than_usual():
    # After steps with gradient 1, u of gradient 100 would be far above 1.
    x = keras.Variable(np.full(4, 2.0), dtype="float32")
    optimizer = Adafactor({"x": x})
    for step in range(20):
        gradient = tf.fill([4], 100.0 if step == 19 else 1.0)
        before = x.numpy()
        optimizer.apply([gradient], tf.constant(step), tf.constant(0.01))
    np.testing.assert_allclose(before - x.numpy(), 0.01 * before, rtol=1e-5)


@pytest.mark.parametrize("earlier", [0, 2])
def test_a_disabled_step_of_adafactor_changes_no_bit(earlier):
    ours = variables()
    optimizer = Adafactor(ours)
    for step in range(earlier):
        optimizer.apply(gradients(step), tf.constant(step), tf.constant(RATES[step]))
    values = [*ours.values(), *optimizer.state().values()]
    before = [value.numpy() for value in values]
    optimizer.apply(gradients(2), tf.constant(2), tf.constant(0.3), tf.constant(False))
    for value, expected in zip(values, before, strict=True):
        np.testing.assert_array_equal(value.numpy(), expected)
