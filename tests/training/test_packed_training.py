"""Training on packed rows compiles one shape and resumes with the same bits."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import fast
from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import make_batching_config
from tests import forks
from tests.training import toy

STEPS = 60


def random_pairs():
    rng = np.random.default_rng(0)
    sides = toy.side(rng, 200), toy.side(rng, 200)
    return EncodedPairs.from_lists(*([row[row > 0] for row in each] for each in sides))


def train(directory, replicas):
    """Trains with XLA and dropout; prints the step from which it has resumed."""
    fast.install()
    name = "mirrored" if replicas > 1 else "one_device"
    chosen = strategy.choose(name, replicas, xla=True)
    hparams = toy.HPARAMS.replace(
        batching="packed",
        packed_length=16,
        max_tokens_per_device=32,
        train_steps=STEPS,
        checkpoint_steps=20,
        xla=True,
    )
    with chosen.scope():
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, Path(directory))
    start = loop.restore()
    print("from", start)
    pairs, config = random_pairs(), make_batching_config(hparams)

    def batches(step):
        return pipeline.batches(pairs, config, hparams.seed, step)

    monitor = Monitor(None, STEPS, start, sys.stderr, loop.unreported)
    assert loop.run(batches, monitor, toy.never)
    np.savez(f"{directory}.npz", *(each.numpy() for each in loop.weights.values()))


@pytest.mark.medium
def test_one_shape_is_compiled_and_a_resumed_run_has_the_same_bits(tmp_path):
    whole, copy, two = (tmp_path / name for name in ("whole", "copy", "two"))
    for folder, start, replicas in ((whole, 0, 1), (two, 0, 2), (copy, 40, 1)):
        if start:
            # The state of a run that was killed before its last checkpoint.
            step = f"step-{start:08d}"
            shutil.copytree(whole / step, copy / step)
        dump = tmp_path / f"programs of {folder.name}"
        (result,) = forks.run(train, (str(folder), replicas), **toy.dumping_to(dump))
        assert result[:2] == (0, f"from {start}\n"), result.err[-2000:]
        assert toy.compiled(dump) == replicas
    with np.load(f"{whole}.npz") as expected, np.load(f"{copy}.npz") as weights:
        for name in expected.files:
            np.testing.assert_array_equal(weights[name], expected[name])
