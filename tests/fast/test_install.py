"""Optimized implementations: those of each device, and how they are switched off."""

import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast import cross_entropy, int8_matmul, normalization
from t2t_repro.layers import functional, label_smoothing
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.models import generate
from t2t_repro.system.errors import UserError
from t2t_repro.training.step import TrainStep
from tests import run_command, tiny
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
        label_smoothing.smoothed_cross_entropy.implementation,
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


def installed():
    return {
        k.name
        for k in fast.kernels("CPU")
        if k.function.implementation is not k.function.reference
    }


def test_each_name_can_be_left_out():
    for name in fast.NAMES:
        fast.install("CPU", without=[name])
        assert installed() == {*fast.NAMES} - {name}
    fast.install("CPU", without=fast.NAMES)
    assert not fast.is_installed()
    assert {kernel.name for kernel in fast.kernels("GPU")} < {*fast.NAMES}


def test_an_unknown_name_is_rejected():
    with pytest.raises(UserError, match="called kv_cash; use one of flat_matmul, "):
        fast.install("CPU", without=["kv_cash"])


def test_the_environment_variable_switches_all_of_them_off(monkeypatch):
    fast.install("CPU")
    monkeypatch.setenv("T2T_REPRO_FAST", "0")
    fast.install("CPU")
    assert not fast.is_installed()
    monkeypatch.setenv("T2T_REPRO_FAST", "1")
    fast.install("CPU")
    assert fast.is_installed()


def test_the_page_has_a_row_for_each_name():
    page = run_command.ROOT / "docs/explanation/optimized_implementations.md"
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.M)
    assert rows == [*fast.NAMES]


@pytest.fixture
def calls(monkeypatch):
    """The layers whose `MultiHeadAttention.call` ran."""
    found = []
    call = MultiHeadAttention.call

    def counted(self, *args, **kwargs):
        found.append(self.path)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(MultiHeadAttention, "call", counted)
    return found


@pytest.mark.medium
@pytest.mark.parametrize("flags", [(), ("--no-fast",)])
def test_train_calls_the_attention_layer_only_without_optimizations(
    tmp_path, calls, flags
):
    tiny.write_corpus(tmp_path / "data")
    tiny.write_hparams(tmp_path)
    arguments = tiny.Trained(tmp_path, run_command.Done(0, "", "")).arguments()
    done = run_command.run("train", *arguments, "--train_steps", "2", *flags)
    assert done.status == 0, done.err
    layers = {path.partition("/")[2] for path in calls}
    expected = {
        "encoder/layer_0/self_attention",
        "decoder/layer_0/self_attention",
        "decoder/layer_0/cross_attention",
    }
    assert layers == (expected if flags else set())


@pytest.mark.medium
def test_translate_finds_the_same_with_and_without_optimizations(trained, calls):
    given = ("--model_dir", str(trained.model_dir))
    text = "".join(f"{line}\n" for line, _ in tiny.pairs("test")).encode()
    found = [
        run_command.run("translate", *given, *flags, stdin=text)
        for flags in ((), ("--no-fast",))
    ]
    assert [done.status for done in found] == [0, 0], found
    assert found[0].out == found[1].out
    assert calls  # The encoder's layers were called.


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "flags", "words"),
    [
        ("translate", ("--precision", "int8"), "--precision int8 needs the optimized"),
        ("translate", ("--xla",), "--xla compiles the optimized search"),
        (
            "export",
            ("--precision", "int8", "--export_dir", "e"),
            "--precision int8 needs the optimized",
        ),
    ],
)
def test_what_needs_the_optimizations_is_refused_without(
    trained, tmp_path, monkeypatch, command, flags, words
):
    if command == "translate" and "int8" in flags and int8_matmul.unsupported_reason():
        pytest.skip(f"{int8_matmul.unsupported_reason()}: float32 is used")
    monkeypatch.chdir(tmp_path)
    done = run_command.run(
        command, "--model_dir", str(trained.model_dir), "--no-fast", *flags
    )
    assert run_command.is_one_clear_line(done)
    assert words in done.err
