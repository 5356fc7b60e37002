"""Tests of training in bfloat16 and float16, of XLA and of loss scaling."""

from itertools import repeat

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.models.precision import mixed_precision
from t2t_repro.training import loss_scale
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.step import TrainStep
from tests import sixteen_bits
from tests.training import toy

# Without dropout, because masks differ between precisions.
HPARAMS = toy.HPARAMS.resolve_auto().replace(
    dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0
)


def loop(directory, hparams):
    with mixed_precision(hparams.precision):
        model = toy.model(hparams)
    return TrainingLoop(model, hparams, tf.distribute.get_strategy(), directory)


def losses(directory, batches=toy.batches, **changes):
    """Trains six steps; returns the losses and the loop."""
    trained = loop(directory, HPARAMS.replace(**changes))
    monitor = toy.monitor()
    results = []
    monitor.record_step = lambda step, result: results.append(float(result.loss))
    assert trained.run(batches, monitor, toy.never)
    return np.array(results), trained


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return losses(tmp_path_factory.mktemp("float32"))


@pytest.fixture(scope="module", params=sixteen_bits.both())
def in_sixteen_bits(request, tmp_path_factory):
    """Returns a precision, and the losses and the loop of a training in it."""
    precision = request.param
    return precision, *losses(tmp_path_factory.mktemp(precision), precision=precision)


@pytest.mark.medium
def test_losses_equal_float32_up_to_rounding(expected, in_sixteen_bits):
    precision, actual, trained = in_sixteen_bits
    bits = {"bfloat16": 8, "float16": 11}[precision]
    # A few dozen roundings to `bits` bits accumulate.
    np.testing.assert_allclose(actual, expected[0], rtol=16 * 2.0**-bits)
    assert (actual != expected[0]).all()
    assert {v.dtype for v in trained.weights.values()} == {"float32"}


@pytest.mark.medium
def test_rows_of_padding_keep_loss_and_gradient_finite(in_sixteen_bits):
    *_, trained = in_sixteen_bits
    start = {name: weight.numpy() for name, weight in trained.weights.items()}
    whole = toy.rectangle(0)
    filler = {name: np.pad(ids, [[0, 2], [0, 0]]) for name, ids in whole.items()}
    plain = trained.update(toy.pack(whole), 0)
    for name, weight in trained.weights.items():
        weight.assign(start[name])
    filled = trained.update(toy.pack(filler), 0)
    assert float(filled[0]) == pytest.approx(float(plain[0]), rel=1e-3)
    assert float(filled[3]) == pytest.approx(float(plain[3]), rel=1e-2)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("bound", "batches"),
    [(0, toy.batches), (16, lambda step: repeat(toy.batch(0, microbatches=2)))],
    ids=["one micro-batch", "two micro-batches"],
)
def test_xla_trains_the_same_weights(tmp_path, expected, bound, batches):
    """XLA compiles a function for each shape: one, or those of three and two rows."""
    settings = {"max_tokens_per_device": bound, "batches": batches}
    if bound:
        expected = losses(tmp_path / "plain", **settings)
    actual, compiled = losses(tmp_path / "xla", xla=True, **settings)
    np.testing.assert_allclose(actual, expected[0], rtol=1e-5)
    for name, weight in expected[1].weights.items():
        np.testing.assert_allclose(
            compiled.weights[name].numpy(), weight.numpy(), atol=1e-5, err_msg=name
        )


def scale_of(step):
    return [float(value) for value in step.loss_scale.state().values()]


@sixteen_bits.needs("float16")
def test_overflow_skips_the_step_and_halves_the_scale():
    hparams = HPARAMS.replace(precision="float16")
    with mixed_precision("float16"):
        step = TrainStep(toy.model(hparams), hparams, accumulate=False)
    variables = [v.value for v in step.model.trainable_variables]
    assert scale_of(step) == [32768.0, 0.0]
    scale = step.loss_scale.state()["loss_scale/scale"]
    scale.assign(2.0**40)  # The largest float16 is 65,504.
    before = [v.numpy() for v in variables]
    loss, *_, norm, _ = step.replica_step(toy.batch(0), tf.constant(0))
    assert np.isfinite(float(loss))
    assert not np.isfinite(float(norm))
    for variable, value in zip(variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert scale_of(step) == [2.0**39, 0.0]


def test_two_thousand_finite_steps_double_the_scale():
    scale = loss_scale.DynamicLossScale()
    strategy = tf.distribute.get_strategy()

    @tf.function
    def update(finite):
        strategy.run(scale.update, args=(finite,))

    state = scale.state()
    state["loss_scale/finite_updates"].assign(1998.0)
    update(tf.constant(True))
    assert [float(v) for v in state.values()] == [32768.0, 1999.0]
    update(tf.constant(True))
    assert [float(v) for v in state.values()] == [65536.0, 0.0]
    update(tf.constant(False))
    assert [float(v) for v in state.values()] == [32768.0, 0.0]


@sixteen_bits.needs("float16")
def test_restores_the_loss_scale_from_a_checkpoint(tmp_path):
    hparams = HPARAMS.replace(precision="float16")
    names = ("loss_scale/scale", "loss_scale/finite_updates")
    first, second = (loop(tmp_path, hparams) for _ in range(2))
    for name, value in zip(names, (4096.0, 3.0), strict=True):
        first.state[name].assign(value)
    first.step = 4
    first.save()
    assert second.restore() == 4
    assert [float(second.state[name]) for name in names] == [4096.0, 3.0]


def test_unscaled_gradients_are_those_of_the_sum():
    """The mean of 12 over 4 tokens, times 32,768, is 98,304."""
    scale = loss_scale.DynamicLossScale()
    total, tokens = tf.constant(12.0), tf.constant(4.0)
    assert float(scale.scale_loss(total, tokens)) == 98_304.0
    (gradient,) = scale.unscale_gradients([tf.constant([8192.0], tf.float16)], tokens)
    assert gradient.dtype == tf.float32
    assert gradient.numpy().tolist() == [1.0]
