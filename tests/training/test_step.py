"""Tests of the training step against tensor2tensor, and of the division of batches."""

from itertools import product

import numpy as np
import pytest
import tensorflow as tf
from golden_checks.t2t_variables import assign_from_t2t

from t2t_repro.batches import packed_batch
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.models.variables import find_frozen, named_variables
from t2t_repro.system.errors import UserError
from t2t_repro.training.step import TrainStep
from tests import golden
from tests.training import toy


def run_six_steps(arrays, hparams, rows):
    """Trains six steps with micro-batches of `rows` rows (0: a single micro-batch).

    Returns the model and the results of the steps.
    """
    model = golden.model_of(arrays, hparams)
    step = TrainStep(model, hparams, accumulate=rows > 0)
    strategy = tf.distribute.get_strategy()

    # The signature gives one trace for all shapes.
    @tf.function(input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)])
    def update(batch, number):
        return strategy.run(step.replica_step, args=(batch, number))

    results = []
    for number in range(6):
        whole = {
            side: arrays[f"{side}_{number}"].astype(np.int32)
            for side in ("inputs", "targets")
        }
        batch = toy.pack(*cut(whole, rows or len(whole["inputs"])))
        results.append([float(x) for x in update(batch, number)])
    return model, np.array(results)


def cut(whole, rows):
    """Divides a rectangle into rectangles of at most `rows` rows."""
    return [
        {side: ids[start : start + rows] for side, ids in whole.items()}
        for start in range(0, len(whole["inputs"]), rows)
    ]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("case", "rows"),
    [
        *(("v1", 2), ("v3", 0)),
        # `test_check_golden.py` compares the same steps, with their gradients.
        pytest.param("v1", 0, marks=pytest.mark.slow),
        pytest.param("v3", 2, marks=pytest.mark.slow),
    ],
)
def test_six_steps_equal_tensor2tensor(shared_dir, case, rows):
    arrays = golden.load(shared_dir / "t2t/golden" / f"train_{case}.npz")
    hparams = golden.hparams_of(arrays).replace(
        learning_rate_schedule="paper" if case == "v1" else "t2t",
        learning_rate_scale=1.0 if case == "v1" else 2.0,
    )
    model, results = run_six_steps(arrays, hparams, rows)
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


def one_update(microbatches):
    """Runs a step on a batch of five rows.

    Returns its results, and weights and optimizer state by name.
    """
    hparams = toy.HPARAMS.replace(
        dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, adam_beta1=0.0
    )
    model = toy.model(hparams)
    step = TrainStep(model, hparams, microbatches > 1)
    batch = toy.batch(0, microbatches)
    shapes = {tuple(rectangle(batch, n)[0].shape) for n in range(microbatches)}
    assert len(shapes) == microbatches
    loss, tokens, _, norm, rate = step.replica_step(batch, tf.constant(0))
    # With beta1 = 0, Adam's first moment is the gradient itself.
    state = {n: v.numpy() for n, v in named_variables(model).items()}
    state |= {n: v.numpy() for n, v in step.optimizer.state().items()}
    return [loss, tokens, norm, rate], state


@pytest.mark.medium
def test_the_step_does_not_depend_on_the_division_of_the_batch():
    """Micro-batches have only as many columns as their longest row."""
    results, state = one_update(3)
    expected, whole = one_update(1)
    np.testing.assert_allclose(results, expected, rtol=1e-5)
    for name, value in whole.items():
        np.testing.assert_allclose(state[name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("shapes", "replicas", "expected"),
    [
        # Replicas take turns; seeds do not depend on the replica.
        ([1, 2, 3], 1, [[(0, 2), (1, 2), (2, 4)]]),
        ([1, 2, 3], 2, [[(0, 2), (2, 4)], [(1, 2)]]),
        # Five replicas for two micro-batches: two slices each, one replica is idle.
        ([4, 3], 5, [[(0, 2)], [(20_014, 2)], [(1, 2)], [(20_015, 2)], []]),
        # One row for two replicas: the second has only rows of padding.
        ([1], 2, [[(0, 2)], [(20_014, 2)]]),
        # Seven rows for two replicas: two slices of four rows; the last row is padding.
        ([7], 2, [[(0, 4)], [(20_014, 4)]]),
    ],
)
def test_replicas_take_whole_micro_batches_if_there_are_enough(
    monkeypatch, shapes, replicas, expected
):
    """`shapes` are the rows of micro-batches, `expected` (seed, rows) per replica."""
    step = TrainStep(toy.model(), toy.HPARAMS.replace(seed=0), accumulate=True)
    batch = toy.pack(*(toy.rectangle(rows, rows) for rows in shapes))
    assert work_of_replicas(monkeypatch, step, batch, replicas) == expected


def work_of_replicas(monkeypatch, step, batch, replicas):
    """Returns a list per replica of the (first seed, rows) of its computations.

    Asserts that together they include every row once.
    """
    work, tokens = [], []

    def differentiate(inputs, targets, seeds):
        (step_of_one, one), (step_of_other, other) = seeds.numpy().tolist()
        assert step_of_one == step_of_other == 7
        assert other - one == 10_007
        work[-1].append((one, len(inputs)))
        tokens.append(int(tf.math.count_nonzero(inputs)))
        return 0.0, 0.0, [0.0 for _ in step._variables]

    monkeypatch.setattr(step, "_differentiate", differentiate)
    for replica in range(replicas):
        work.append([])
        step._accumulate_gradients(
            batch, tf.constant(7), tf.constant(replica), replicas
        )
    microbatches = range(len(batch["inputs"]))
    assert sum(tokens) == sum(
        np.count_nonzero(rectangle(batch, microbatch)[0]) for microbatch in microbatches
    )
    return work


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_every_half_of_every_step_has_a_different_dropout_seed(seed):
    hparams = toy.HPARAMS.replace(seed=seed)
    step = TrainStep(toy.model(), hparams, accumulate=True)
    seeds = {
        tuple(half)
        for number, microbatch, cut in product((0, 1, 300_000), range(4), range(2))
        for half in step._dropout_seeds(number, microbatch, cut).numpy()
    }
    assert len(seeds) == 48


def test_clips_gradients_to_the_norm():
    hparams = toy.HPARAMS.replace(adam_beta1=0.0, clip_norm=0.01)
    model = toy.model(hparams)
    step = TrainStep(model, hparams, accumulate=False)
    *_, norm, _ = step.replica_step(toy.batch(0), tf.constant(0))
    # With beta1 = 0, Adam's first moment is the gradient itself.
    moments = [m for name, m in step.optimizer.state().items() if name[0] == "m"]
    assert float(norm) > 0.1
    assert float(tf.linalg.global_norm(moments)) == pytest.approx(0.01, rel=1e-5)


@pytest.mark.medium
def test_reports_tokens_token_ratio_rate_and_loss():
    step = TrainStep(toy.model(), toy.HPARAMS, accumulate=True)
    batch = toy.pack(
        {"inputs": [[5, 6, 1, 0], [7, 1, 0, 0]], "targets": [[8, 1, 0], [9, 4, 1]]},
        {"inputs": [[4, 1]], "targets": [[5, 1]]},
    )
    loss, tokens, share, _, rate = step.replica_step(batch, tf.constant(3))
    assert float(tokens) == 7
    # The batch has two rows of 4 + 3 positions and one of 2 + 2.
    assert float(share) == pytest.approx(14 / 18)
    # 16^-0.5 * 4 * 10^-1.5 is the rate of the fourth of ten warm-up steps.
    assert float(rate) == pytest.approx(10**-1.5, rel=1e-6)
    # An untrained model's loss is near log(vocab_size), that of equal probabilities.
    assert 1 < float(loss) < 2 * np.log(toy.VOCAB_SIZE)


def test_frozen_weights_stay_and_the_others_are_trained_as_without_them():
    """Adam's updates of a weight depend on its own gradient only."""
    trained = {}
    for freeze in (None, "encoder/* embedding/*"):
        hparams = toy.HPARAMS.replace(freeze=freeze)
        model = toy.model(hparams)
        before = {n: v.numpy() for n, v in named_variables(model).items()}
        step = TrainStep(model, hparams, accumulate=False)
        batch = toy.pack(toy.rectangle(0))
        tf.distribute.get_strategy().run(
            step.replica_step, args=(batch, tf.constant(0))
        )
        trained[freeze] = {n: v.numpy() for n, v in named_variables(model).items()}
    for name, value in before.items():
        is_frozen = name.startswith(("encoder/", "embedding/"))
        expected = value if is_frozen else trained[None][name]
        np.testing.assert_array_equal(trained["encoder/* embedding/*"][name], expected)
        assert is_frozen or (expected != value).any()


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ("encoder/* encodr/*", "no weight is named encodr/.*decoder/, embedding/, enc"),
        ("*", "matches all weights"),
    ],
)
def test_patterns_of_frozen_weights_are_checked(patterns, message):
    names = ["decoder/norm/scale", "embedding/table", "encoder/norm/scale"]
    with pytest.raises(UserError, match=message):
        find_frozen(names, patterns)
