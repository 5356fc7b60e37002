"""Optimized implementations of each device, and the ways to disable them."""

import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast import cross_entropy, normalization
from t2t_repro.layers import functional, label_smoothing
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.models import generate
from t2t_repro.system.errors import UserError
from t2t_repro.training.step import TrainStep
from tests import run_command, tiny
from tests.training import toy


def implementations():
    return (
        functional.normalize.implementation,
        label_smoothing.smoothed_cross_entropy.implementation,
    )


CPU_IMPLEMENTATIONS = normalization.normalize, cross_entropy.smoothed_cross_entropy
GPU_IMPLEMENTATIONS = (
    normalization.normalize_by_reductions,
    cross_entropy.compare_with_labels,
)


def test_installs_cpu_implementations_by_default_without_a_gpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    fast.install()
    assert implementations() == CPU_IMPLEMENTATIONS
    fast.install("GPU")
    assert implementations() == GPU_IMPLEMENTATIONS
    # Installing for a GPU removes the implementations that only a CPU has.
    assert generate.generate.implementation is generate.generate.reference


def test_installs_gpu_implementations_by_default_with_a_gpu(fake_gpu):
    fast.install()
    assert implementations() == GPU_IMPLEMENTATIONS
    fast.install("CPU")
    assert implementations() == CPU_IMPLEMENTATIONS


@pytest.fixture(scope="module")
def loss_and_gradients():
    """Returns a function that computes them with changed hyper-parameters."""
    # Without dropout, because XLA draws other masks.
    off = {"dropout": 0.0, "attention_dropout": 0.0, "ffn_dropout": 0.0}
    hparams = toy.HPARAMS.replace(num_layers=2, **off)
    model = toy.model(hparams)
    batch = toy.rectangle(0)
    seeds = tf.constant([[1, 2], [3, 4]])

    def compute(**changes):
        step = TrainStep(model, hparams.replace(**changes), accumulate=False)
        total, tokens, gradients = step._differentiate(
            batch["inputs"], batch["targets"], seeds
        )
        return [total, tokens, *gradients]

    return compute


@pytest.fixture(scope="module")
def reference_loss_and_gradients(loss_and_gradients):
    return loss_and_gradients()


@pytest.mark.medium
@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_loss_and_gradients_equal_the_reference(
    loss_and_gradients, reference_loss_and_gradients, device, xla
):
    fast.install(device)
    results = loss_and_gradients(xla=xla)
    for result, reference in zip(results, reference_loss_and_gradients, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-4)


def installed_names():
    return {
        k.name
        for k in (*fast.kernels("CPU"), *fast.kernels("GPU"))
        if k.function.implementation is not k.function.reference
    }


def test_each_implementation_can_be_excluded():
    for name in fast.NAMES:
        fast.install("CPU", without=[name])
        assert installed_names() == {*fast.NAMES} - {name, "chunked_loss", "relu"}
    fast.install("GPU", without=["lanes"])
    assert "chunked_loss" in installed_names()
    fast.install("GPU", without=["chunked_loss"])
    assert "chunked_loss" not in installed_names()
    fast.install("CPU", without=fast.NAMES)
    assert not fast.is_installed()
    assert {kernel.name for kernel in fast.kernels("GPU")} < {*fast.NAMES}


def test_rejects_an_unknown_name():
    with pytest.raises(UserError, match="called kv_cash; use one of shared_trace, "):
        fast.install("CPU", without=["kv_cash"])


def test_environment_variable_disables_all_implementations(monkeypatch):
    fast.install("CPU")
    monkeypatch.setenv("T2T_REPRO_FAST", "0")
    fast.install("CPU")
    assert not fast.is_installed()
    monkeypatch.setenv("T2T_REPRO_FAST", "1")
    fast.install("CPU")
    assert fast.is_installed()


def test_documentation_has_a_row_for_each_name():
    page = run_command.ROOT / "docs/explanation/optimized_implementations.md"
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.M)
    assert rows == [*fast.NAMES]


@pytest.fixture
def calls(monkeypatch):
    """Returns a list of the layers whose `MultiHeadAttention.call` ran."""
    paths = []
    call = MultiHeadAttention.call

    def record(self, *args, **kwargs):
        paths.append(self.path)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(MultiHeadAttention, "call", record)
    return paths


@pytest.mark.medium
@pytest.mark.parametrize("flags", [(), ("--no-fast",)])
def test_train_calls_the_attention_layer_only_without_optimizations(
    tmp_path, calls, flags
):
    tiny.write_corpus(tmp_path / "data")
    tiny.write_hparams(tmp_path)
    arguments = tiny.Trained(tmp_path, run_command.Done(0, "", "")).arguments()
    # In its warm-up, the model is not scored.
    arguments[1] += ",warmup_steps=9"
    result = run_command.run("train", *arguments, "--train_steps", "2", *flags)
    assert result.status == 0, result.err
    layers = {path.partition("/")[2] for path in calls}
    expected = {
        "encoder/layer_0/self_attention",
        "decoder/layer_0/self_attention",
        "decoder/layer_0/cross_attention",
    }
    assert layers == (expected if flags else set())


@pytest.mark.medium
def test_translations_are_equal_with_and_without_optimizations(trained, calls):
    model = ("--model_dir", str(trained.model_dir))
    text = "".join(f"{line}\n" for line, _ in tiny.pairs("test")).encode()
    with_optimizations = run_command.run("translate", *model, stdin=text)
    assert not calls
    without = run_command.run("translate", *model, "--no-fast", stdin=text)
    assert calls  # The encoder without optimizations called its attention layers.
    assert (with_optimizations.status, without.status) == (0, 0), without.err
    assert with_optimizations.out == without.out
