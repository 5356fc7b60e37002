"""The update agrees with tensor2tensor's and does not depend on how it is cut."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import tensorflow as tf
from golden_checks.t2t_variables import assign_from_t2t

from t2t_repro.batches import packed_batch
from t2t_repro.batches.packed_batch import pack, rectangle
from t2t_repro.models.variables import named_variables
from t2t_repro.training.step import TrainStep
from tests import golden
from tests.training import toy


def run_six_steps(arrays, hparams, rows):
    """Makes the updates, each batch in parts of so many rows; 0: in one part."""
    model = golden.model_of(arrays, hparams)
    step = TrainStep(model, hparams, accumulate=rows > 0)
    strategy = tf.distribute.get_strategy()

    # One trace for all shapes.
    @tf.function(input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)])
    def update(batch, number):
        return strategy.run(step.replica_step, args=(batch, number))

    results = []
    for number in range(6):
        whole = {
            side: arrays[f"{side}_{number}"].astype(np.int32)
            for side in ("inputs", "targets")
        }
        batch = pack(*cut(whole, rows or len(whole["inputs"])))
        results.append([float(x) for x in update(batch, number)])
    return model, np.array(results)


def cut(whole, rows):
    """Cuts a rectangle into some of so many rows, the last one of what is left."""
    return [
        {side: ids[start : start + rows] for side, ids in whole.items()}
        for start in range(0, len(whole["inputs"]), rows)
    ]


@pytest.mark.medium
@pytest.mark.parametrize("case", ["v1", "v3"])
@pytest.mark.parametrize("rows", [0, 2])
def test_six_updates_are_those_of_tensor2tensor(shared_dir, case, rows):
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


@cache
def one_update(parts):
    """Makes an update of five rows; returns its results, and all that it left."""
    hparams = toy.HPARAMS.replace(
        dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, adam_beta1=0.0
    )
    model = toy.model(hparams)
    step = TrainStep(model, hparams, parts > 1)
    batch = toy.batch(0, parts)
    shapes = {tuple(rectangle(batch, part)[0].shape) for part in range(parts)}
    assert len(shapes) > 1 or parts == 1
    loss, tokens, _, norm, rate = step.replica_step(batch, tf.constant(0))
    # With beta1 = 0, Adam's first moment is the gradient itself.
    state = {n: v.numpy() for n, v in named_variables(model).items()}
    state |= {n: v.numpy() for n, v in step.optimizer.state().items()}
    return [loss, tokens, norm, rate], state


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_however_a_batch_is_cut_the_update_is_the_same(parts):
    """Rows of eight positions; or parts, each as wide as it must be."""
    results, state = one_update(parts)
    expected, whole = one_update(1)
    np.testing.assert_allclose(results, expected, rtol=1e-5)
    for name, value in whole.items():
        np.testing.assert_allclose(state[name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("shapes", "replicas", "expected"),
    [
        # Whole parts in turn, the same masks wherever they are computed.
        ([1, 2, 3], 1, [[(0, 2), (1, 2), (2, 4)]]),
        ([1, 2, 3], 2, [[(0, 2), (2, 4)], [(1, 2)]]),
        # Five replicas for two parts: each part is cut in two, one replica is idle.
        ([4, 3], 5, [[(0, 2)], [(20_014, 2)], [(1, 2)], [(20_015, 2)], []]),
        # A part of one row for two replicas: one has filler rows only.
        ([1], 2, [[(0, 2)], [(20_014, 2)]]),
        # Seven rows in four halves of two; the last one has a filler row.
        ([7], 2, [[(0, 4)], [(20_014, 4)]]),
    ],
)
def test_replicas_take_whole_parts_where_there_are_enough(
    monkeypatch, shapes, replicas, expected
):
    """What a replica computes: dropout's first seed beyond the run's, and rows."""
    step = TrainStep(toy.model(), toy.HPARAMS.replace(seed=0), accumulate=True)
    batch = pack(*(toy.rectangle(rows, rows) for rows in shapes))
    assert what_replicas_compute(monkeypatch, step, batch, replicas) == expected


def what_replicas_compute(monkeypatch, step, batch, replicas):
    """Returns for each replica its seeds beyond the run's, and rows; all rows once."""
    found, symbols = [], []

    def differentiate(inputs, targets, seeds):
        (step_of_one, one), (step_of_other, other) = seeds.numpy().tolist()
        assert step_of_one == step_of_other == 7
        assert other - one == 10_007
        found[-1].append((one, len(inputs)))
        symbols.append(int(tf.math.count_nonzero(inputs)))
        return 0.0, 0.0, [0.0 for _ in step._variables]

    monkeypatch.setattr(step, "_differentiate", differentiate)
    for replica in range(replicas):
        found.append([])
        step._accumulated(batch, tf.constant(7), tf.constant(replica), replicas)
    parts = range(len(batch["inputs"]))
    assert sum(symbols) == sum(
        np.count_nonzero(rectangle(batch, part)[0]) for part in parts
    )
    return found


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_every_half_of_every_step_has_a_dropout_seed_of_its_own(seed):
    hparams = toy.HPARAMS.replace(seed=seed)
    step = TrainStep(toy.model(), hparams, accumulate=True)
    seeds = {
        tuple(half)
        for number, part, cut in product((0, 1, 300_000), range(4), range(2))
        for half in step._dropout_seeds(number, part, cut).numpy()
    }
    assert len(seeds) == 48


def test_gradients_are_clipped_to_the_norm_asked_for():
    hparams = toy.HPARAMS.replace(adam_beta1=0.0, clip_norm=0.01)
    model = toy.model(hparams)
    step = TrainStep(model, hparams, accumulate=False)
    *_, norm, _ = step.replica_step(toy.batch(0), tf.constant(0))
    # With beta1 = 0, Adam's first moment is the gradient itself.
    moments = [m for name, m in step.optimizer.state().items() if name[0] == "m"]
    assert float(norm) > 0.1
    assert float(tf.linalg.global_norm(moments)) == pytest.approx(0.01, rel=1e-5)


def test_a_step_reports_what_was_in_the_batch():
    step = TrainStep(toy.model(), toy.HPARAMS, accumulate=True)
    batch = pack(
        {"inputs": [[5, 6, 1, 0], [7, 1, 0, 0]], "targets": [[8, 1, 0], [9, 4, 1]]},
        {"inputs": [[4, 1]], "targets": [[5, 1]]},
    )
    loss, tokens, share, _, rate = step.replica_step(batch, tf.constant(3))
    assert float(tokens) == 7
    # Two rows of 4 + 3 and one of 2 + 2.
    assert float(share) == pytest.approx(14 / 18)
    # 16^-0.5 * 4 * 10^-1.5, the fourth of ten warm-up updates.
    assert float(rate) == pytest.approx(10**-1.5, rel=1e-6)
    # Before anything is learned, symbols are nearly equally likely.
    assert 1 < float(loss) < 2 * np.log(toy.VOCAB_SIZE)
