"""The update agrees with tensor2tensor's and does not depend on how it is cut."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.interop.variable_names import assign_from_t2t
from t2t_repro.models.transformer import named_variables
from t2t_repro.training.step import BATCH_SIGNATURE, TrainStep
from tests import golden
from tests.training import toy


def run_six_steps(arrays, hparams, accumulate):
    model = golden.model_of(arrays, hparams)
    step = TrainStep(model, hparams, accumulate)
    strategy = tf.distribute.get_strategy()

    # One trace for all shapes.
    @tf.function(input_signature=[*BATCH_SIGNATURE, tf.TensorSpec([], tf.int32)])
    def update(inputs, targets, number):
        return strategy.run(step.replica_step, args=(inputs, targets, number))

    results = []
    for number in range(6):
        inputs = tf.constant(arrays[f"inputs_{number}"], tf.int32)
        targets = tf.constant(arrays[f"targets_{number}"], tf.int32)
        results.append([float(x) for x in update(inputs, targets, number)])
    return model, np.array(results)


@pytest.mark.medium
@pytest.mark.parametrize("case", ["v1", "v3"])
@pytest.mark.parametrize("accumulate", [False, True])
def test_six_updates_are_those_of_tensor2tensor(shared_dir, case, accumulate):
    arrays = golden.load(shared_dir / "t2t/golden" / f"train_{case}.npz")
    hparams = golden.hparams_of(arrays).replace(
        max_tokens_per_device=16,
        learning_rate_schedule="paper" if case == "v1" else "t2t",
        learning_rate_scale=1.0 if case == "v1" else 2.0,
    )
    model, results = run_six_steps(arrays, hparams, accumulate)
    loss, _, _, norm, rate = results.T
    np.testing.assert_allclose(loss, arrays["losses"], atol=1e-5)
    np.testing.assert_allclose(rate, arrays["learning_rates"], rtol=1e-6)
    np.testing.assert_allclose(norm, arrays["global_grad_norms"], rtol=1e-4)
    final = {
        k.removeprefix("final/"): v for k, v in arrays.items() if k.startswith("final/")
    }
    ours = {n: v.value.numpy() for n, v in named_variables(model).items()}
    assign_from_t2t(model, final, hparams.norm)
    for name, variable in named_variables(model).items():
        np.testing.assert_allclose(
            ours[name], variable.value.numpy(), atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("bound", [8, 16, 24])
def test_uneven_micro_batches_are_one_batch(bound):
    """Five rows of eight positions, cut into 1, 2 or 3 rows at a time."""
    results, weights = [], []
    for accumulate in (False, True):
        hparams = toy.HPARAMS.replace(
            dropout=0.0,
            attention_dropout=0.0,
            ffn_dropout=0.0,
            max_tokens_per_device=bound,
        )
        model = toy.model(hparams)
        step = TrainStep(model, hparams, accumulate)
        batch = toy.batch(0)
        results.append(
            step.replica_step(batch["inputs"], batch["targets"], tf.constant(0))
        )
        weights.append({n: v.numpy() for n, v in named_variables(model).items()})
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
    for name, value in weights[0].items():
        np.testing.assert_allclose(weights[1][name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_every_micro_batch_and_step_has_a_dropout_seed_of_its_own(seed):
    hparams = toy.HPARAMS.replace(seed=seed)
    step = TrainStep(toy.model(), hparams, accumulate=True)
    seeds = {
        tuple(step._dropout_seed(tf.constant(number), tf.constant(part)).numpy())
        for number in (0, 1, 300_000)
        for part in range(4)
    }
    assert len(seeds) == 12


def test_gradients_are_clipped_to_the_norm_asked_for():
    hparams = toy.HPARAMS.replace(adam_beta1=0.0, clip_norm=0.01)
    model = toy.model(hparams)
    step = TrainStep(model, hparams, accumulate=False)
    batch = toy.batch(0)
    *_, norm, _ = step.replica_step(batch["inputs"], batch["targets"], tf.constant(0))
    # With beta1 = 0, Adam's first moment is the gradient itself.
    moments = [m for name, m in step.optimizer.state().items() if name[0] == "m"]
    assert float(norm) > 0.1
    assert float(tf.linalg.global_norm(moments)) == pytest.approx(0.01, rel=1e-5)


def test_a_step_reports_what_was_in_the_batch():
    step = TrainStep(toy.model(), toy.HPARAMS, accumulate=False)
    inputs = tf.constant([[5, 6, 1, 0], [7, 1, 0, 0]])
    targets = tf.constant([[8, 1, 0], [9, 4, 1]])
    loss, tokens, share, _, rate = step.replica_step(inputs, targets, tf.constant(3))
    assert float(tokens) == 5
    assert float(share) == pytest.approx(10 / 14)
    # 16^-0.5 * 4 * 10^-1.5, the fourth of ten warm-up updates.
    assert float(rate) == pytest.approx(10**-1.5, rel=1e-6)
    # Before anything is learned, symbols are nearly equally likely.
    assert 1 < float(loss) < 2 * np.log(toy.VOCAB_SIZE)
