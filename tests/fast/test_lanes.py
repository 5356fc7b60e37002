"""Gradients do not depend on whether halves of a micro-batch run in parallel lanes."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast.lanes import sum_in_lanes
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.models.halves import sum_over_halves
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from t2t_repro.training.step import TrainStep
from tests.training import toy

MODELS = {
    "plain": {},
    "relative positions": {"norm": "pre", "max_relative_position": 3},
    "local attention": {"self_attention_radius": 2},
}
SEEDS = tf.constant([[1, 2], [3, 4]])


def rectangle():
    """Returns the sides of a micro-batch of six rows whose halves differ."""
    return [tf.constant(side) for side in toy.rectangle(0, 6).values()]


def gradients(step, *micro_batch):
    function = tf.function(sum_over_halves, autograph=False)
    return function(step._differentiate, *micro_batch, SEEDS)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "installed"), [(kind, kind != "plain") for kind in MODELS]
)
def test_both_implementations_equal_separate_halves_with_dropout(kind, installed):
    if installed:
        fast.install("CPU")
    hparams = toy.HPARAMS.replace(**MODELS[kind])
    model = toy.model(hparams)
    inputs, targets = rectangle()
    cross_entropy = LabelSmoothedCrossEntropy(hparams.label_smoothing)
    total = 0.0
    for half, seed in zip((slice(0, 3), slice(3, 6)), SEEDS, strict=True):
        with dropout_seed(seed):
            sides = {"inputs": inputs[half], "targets": targets[half]}
            logits = model(sides, training=True)
        total += cross_entropy.sum_and_count(targets[half], logits)[0]
    results = []
    for implementation in (sum_over_halves.reference, sum_in_lanes):
        sum_over_halves.implementation = implementation
        step = TrainStep(model, hparams, accumulate=False)
        results.append(gradients(step, inputs, targets))
    for loss, *_ in results:
        assert float(loss) == pytest.approx(float(total), rel=1e-5)
    for whole, lanes in zip(*map(tf.nest.flatten, results), strict=True):
        np.testing.assert_allclose(lanes, whole, rtol=1e-4, atol=1e-5)


def test_lanes_are_installed_only_for_a_cpu():
    fast.install("CPU")
    assert sum_over_halves.implementation is sum_in_lanes
    fast.install("GPU")
    assert sum_over_halves.implementation is sum_over_halves.reference
