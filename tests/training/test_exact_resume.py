"""Tests that a killed and resumed training is bit-identical to an uninterrupted one.

Each training runs in its own process, on two replicas. `test_packed_training.py`
resumes on one.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

import pytest
from inject_faults import compare

from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from tests import forks
from tests.training import toy

NEVER = 1000


def train(directory, kill_at):
    """Trains ten steps with dropout; kills itself when it requests batch `kill_at`.

    Before batch 7, a signal requests a checkpoint of the steps up to it. A batch has
    three micro-batches, of which one replica computes two.
    """
    directory = Path(directory)
    chosen = strategy.choose("mirrored", 2)
    assert chosen.num_replicas_in_sync == 2
    hparams = toy.HPARAMS.replace(
        train_steps=10, checkpoint_steps=3, max_tokens_per_device=24
    )
    with chosen.scope():
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, directory / "checkpoints")
    start = loop.restore()
    print("from", start, flush=True)

    def batches(step):
        for number in count(step):
            if number == 7 and kill_at != NEVER:
                os.kill(os.getpid(), signal.SIGUSR1)
            if number == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            yield toy.batch(number, microbatches=3)

    directory.mkdir(exist_ok=True)
    monitor = Monitor(directory, 10, start, sys.stderr, loop.unreported)
    assert loop.run(batches, monitor, toy.never)


@pytest.mark.medium
def test_a_killed_training_resumes_bit_identically(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done, interrupted = forks.run(train, (str(whole), NEVER), (str(killed), 8))
    assert done.status == 0, done.err[-2000:]
    assert interrupted[:2] == (-signal.SIGKILL, "from 0\n")
    # Step 8 is repeated.
    (resumed,) = forks.run(train, (str(killed), NEVER))
    assert resumed[:2] == (0, "from 7\n"), resumed.err[-2000:]
    # The log has the mean over all ten steps.
    compared, different = compare(whole, killed)
    assert different == []
    assert compared > 0
    assert toy.steps_saved(killed / "checkpoints") == [3, 6, 9, 10]
