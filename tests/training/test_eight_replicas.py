"""Tests that training on eight replicas equals training on one device."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.models.precision import mixed_precision
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from tests import forks
from tests.sixteen_bits import needs
from tests.training import toy

PARTS = (8, 7, 3)


def train(path, replicas, precision, xla):
    """Trains three steps with each number of micro-batches, from the same start.

    Micro-batches have one of two shapes. Writes the results of all steps and the final
    weights, by name.
    """
    chosen = strategy.choose("mirrored", replicas)
    fast.install()
    # Without dropout, because the masks of a sliced micro-batch depend on the slicing.
    hparams = toy.HPARAMS.replace(
        **{"dropout": 0.0, "attention_dropout": 0.0, "ffn_dropout": 0.0},
        **{"max_tokens_per_device": 16, "precision": precision, "xla": xla},
    )
    with chosen.scope(), mixed_precision(precision):
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None)
    variables = [*loop.weights.values(), *loop.state.values()]
    start = [variable.numpy() for variable in variables]
    values = {}
    for count in PARTS:
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        for step in range(3):
            sides = [toy.rectangle(10 * step + i, rows=4 - i % 2) for i in range(count)]
            result = loop.update(toy.pack(*sides), tf.constant(step)).numpy()
            values[f"{count} result {step}"] = result
        for name, weight in loop.weights.items():
            values[f"{count} {name}"] = weight.numpy()
    np.savez(path, **values)


def on_one_and_eight(folder, *settings):
    """Returns the results of `train` on one and on eight replicas."""
    paths = [folder / f"{replicas}.npz" for replicas in (1, 8)]
    calls = [(str(path), int(path.stem), *settings) for path in paths]
    for result in forks.run(train, *calls):
        assert result.status == 0, result.err[-2000:]
    return [dict(np.load(path)) for path in paths]


@pytest.mark.medium
def test_float32_on_eight_replicas_equals_one(tmp_path):
    one, eight = on_one_and_eight(tmp_path, "float32", False)
    assert len(one) > 60
    for name, expected in one.items():
        np.testing.assert_allclose(eight[name], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@needs("bfloat16")
def test_compiled_bfloat16_on_eight_replicas_equals_one(tmp_path):
    one, eight = on_one_and_eight(tmp_path, "bfloat16", True)
    for name, expected in one.items():
        # Sums over rows are rounded to eight bits, so slicing a micro-batch changes
        # them. A bias is the sum of three Adam steps and has their relative error.
        tolerance = 2.0**-6 if name.startswith("3 ") else 1e-5
        error = np.linalg.norm(eight[name] - expected) / np.linalg.norm(expected)
        assert error <= tolerance, name
