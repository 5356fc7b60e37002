"""The update agrees with tensor2tensor's and does not depend on how it is cut."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.models.transformer import named_variables
from t2t_repro.training.step import BATCH_SIGNATURE, TrainStep
from tests import golden


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
    golden.fill(model, final, hparams.norm)
    for name, variable in named_variables(model).items():
        np.testing.assert_allclose(
            ours[name], variable.value.numpy(), atol=1e-5, err_msg=name
        )
