"""Training on packed rows compiles one shape and resumes with the same bits."""

import os
import re
import signal
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from t2t_repro import fast
from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import batching_of
from tests import forks
from tests.training import toy

STEPS = 60
NEVER = 1000


def random_pairs():
    rng = np.random.default_rng(0)
    sides = toy.side(rng, 200), toy.side(rng, 200)
    return EncodedPairs.from_lists(*([row[row > 0] for row in each] for each in sides))


def train(directory, replicas, kill_at):
    """Trains with XLA and dropout; kills itself when it requests batch `kill_at`."""
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
    pairs, config = random_pairs(), batching_of(hparams)

    def batches(step):
        source = iter(pipeline.batches(pairs, config, hparams.seed, step))
        for number in count(step):
            if number == kill_at:
                while not (loop.checkpoint_dir / "step-00000020").exists():
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            yield next(source)

    monitor = Monitor(None, STEPS, start, sys.stderr, loop.unreported)
    assert loop.run(batches, monitor, toy.never)
    np.savez(f"{directory}.npz", *(each.numpy() for each in loop.weights.values()))


@pytest.mark.medium
def test_one_shape_is_compiled_and_a_killed_run_resumes_with_the_same_bits(tmp_path):
    whole, killed, two = (str(tmp_path / name) for name in ("whole", "killed", "two"))
    first, interrupted, on_two = forks.run(
        train, (whole, 1, NEVER), (killed, 1, 30), (two, 2, NEVER), **toy.LOG_OF_XLA
    )
    assert first.status == on_two.status == 0, first.err[-2000:] + on_two.err[-2000:]
    assert interrupted.status == -signal.SIGKILL
    (resumed,) = forks.run(train, (killed, 1, NEVER), **toy.LOG_OF_XLA)
    assert resumed.status == 0, resumed.err[-2000:]
    for result, replicas in ((first, 1), (resumed, 1), (on_two, 2)):
        functions = re.findall("XlaCompiler::CompileFunction", result.err)
        assert len(functions) == replicas
    with np.load(f"{whole}.npz") as expected, np.load(f"{killed}.npz") as weights:
        for name in expected.files:
            np.testing.assert_array_equal(weights[name], expected[name])
