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
from tests.training.test_strategy import worker_environments

PARTS = (8, 7, 3)
# The masks of a sliced micro-batch depend on the slicing.
WITHOUT_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "ffn_dropout": 0.0}


def train(path, replicas, settings, steps=3, ordered=False):
    """Trains some steps with each number of micro-batches, from the same start.

    Micro-batches have one of two shapes. Writes the results of all steps and the final
    weights, by name. 0 replicas: as a worker of the cluster.
    """
    chosen = strategy.choose("mirrored" if replicas else "auto", replicas)
    fast.install()
    defaults = {"max_tokens_per_device": 16, "precision": "float32"}
    hparams = toy.HPARAMS.replace(**(defaults | settings))
    with chosen.scope(), mixed_precision(hparams.precision):
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None, ordered=ordered)
    variables = [*loop.weights.values(), *loop.state.values()]
    start = [variable.numpy() for variable in variables]
    values = {}
    for count in PARTS:
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
        for step in range(steps):
            sides = [toy.rectangle(10 * step + i, rows=4 - i % 2) for i in range(count)]
            result = loop.update(toy.pack(*sides), tf.constant(step)).numpy()
            values[f"{count} result {step}"] = result
        for name, weight in loop.weights.items():
            values[f"{count} {name}"] = weight.numpy()
    np.savez(path, **values)
    loop.workers.wait()


def on_replicas(folder, *numbers, **options):
    """Returns the results of `train` on each number of replicas, without dropout."""
    settings = WITHOUT_DROPOUT | options
    calls = [(str(folder / f"{number}.npz"), number, settings) for number in numbers]
    return results(forks.run(train, *calls), calls)


def results(done, calls):
    """Returns the arrays that successful calls of `train` have written."""
    for result in done:
        assert result.status == 0, result.err[-3000:]
    return [dict(np.load(path)) for path, *_ in calls]


def assert_same_bits(one, *others):
    assert len(one) > 60
    for other in others:
        assert one.keys() == other.keys()
        for name, expected in one.items():
            assert other[name].tobytes() == expected.tobytes(), name


@pytest.mark.medium
def test_ordered_sums_on_eight_replicas_have_the_bits_of_one(tmp_path):
    """With dropout, and with fewer micro-batches than replicas."""
    calls = [(str(tmp_path / f"{n}.npz"), n, {}, 3, True) for n in (1, 8)]
    assert_same_bits(*results(forks.run(train, *calls), calls))


@pytest.mark.slow
def test_ordered_sums_of_twenty_steps_have_the_same_bits_everywhere(tmp_path):
    """One, two, four and eight replicas; two and eight processes."""
    one = None
    for numbers, environments in (
        ((1, 2, 4, 8), None),
        ((0,) * 2, worker_environments(2)),
        ((0,) * 8, worker_environments(8)),
    ):
        calls = [
            (str(tmp_path / f"{index}.npz"), number, {}, 20, True)
            for index, number in enumerate(numbers)
        ]
        running = forks.Forks(train, *calls, environments=environments)
        trained = results(running.finish(timeout=3600), calls)
        one = one or trained[0]
        assert_same_bits(one, *trained)


@pytest.mark.medium
def test_float32_on_eight_replicas_equals_one(tmp_path):
    one, eight = on_replicas(tmp_path, 1, 8)
    assert len(one) > 60
    for name, expected in one.items():
        np.testing.assert_allclose(eight[name], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@needs("bfloat16")
def test_compiled_bfloat16_on_eight_replicas_equals_one(tmp_path):
    one, eight = on_replicas(tmp_path, 1, 8, precision="bfloat16", xla=True)
    for name, expected in one.items():
        # Sums over rows are rounded to eight bits, so slicing a micro-batch changes
        # them. A bias is the sum of three Adam steps and has their relative error.
        tolerance = 2.0**-6 if name.startswith("3 ") else 1e-5
        error = np.linalg.norm(eight[name] - expected) / np.linalg.norm(expected)
        assert error <= tolerance, name
