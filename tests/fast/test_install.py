"""What stands in for the formulas depends on the device, and equals them on each."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast import cross_entropy, normalization
from t2t_repro.layers import functional
from t2t_repro.models import generate
from t2t_repro.training.step import TrainStep
from tests.training import toy


@pytest.fixture
def a_gpu(monkeypatch):
    """Lets TensorFlow say that there is a GPU."""
    real = tf.config.list_physical_devices
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: [*real(kind), "GPU:0"] if kind == "GPU" else real(kind),
    )


def used():
    return (
        functional.normalize.implementation,
        functional.smoothed_cross_entropy.implementation,
    )


ON_A_CPU = normalization.normalize, cross_entropy.smoothed_cross_entropy
ON_A_GPU = normalization.normalize_by_reductions, cross_entropy.by_comparison


def test_without_a_gpu_the_forms_are_a_cpus_unless_a_gpus_are_asked_for(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    fast.install()
    assert used() == ON_A_CPU
    fast.install("GPU")
    assert used() == ON_A_GPU
    # Nothing is prepared for the cache of a processor, whatever was installed before.
    assert generate.generate.implementation is generate.generate.reference


def test_with_a_gpu_they_are_a_gpus_unless_a_cpus_are_asked_for(a_gpu):
    fast.install()
    assert used() == ON_A_GPU
    fast.install("CPU")
    assert used() == ON_A_CPU


@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.medium)])
@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_loss_and_gradients_of_a_part_are_those_of_the_formulas(device, xla):
    # XLA draws the masks of dropout otherwise.
    off = {"dropout": 0.0, "attention_dropout": 0.0, "ffn_dropout": 0.0}
    hparams = toy.HPARAMS.replace(num_layers=2, **off)
    model = toy.model(hparams)
    batch = toy.rectangle(0)
    seeds = tf.constant([[1, 2], [3, 4]])

    def computed(**changes):
        step = TrainStep(model, hparams.replace(**changes), accumulate=False)
        total, tokens, gradients = step._differentiate(
            batch["inputs"], batch["targets"], seeds
        )
        return [total, tokens, *gradients]

    expected = computed()
    fast.install(device)
    for found, wanted in zip(computed(xla=xla), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
