"""Tests that a killed and resumed training is bit-identical to an uninterrupted one.

Each training runs in its own process, on two replicas. `test_packed_training.py`
resumes on one.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.runs import checkpoints
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


def tensors(checkpoint):
    values = {}
    for index in checkpoint.path.glob("*.index"):
        file = checkpoint.tensors(index.stem)
        values |= {f"{index.stem}/{name}": file.read(name) for name in file.shapes()}
    return values


def log(directory: Path):
    rows = (directory / "training_log.tsv").read_text().splitlines()
    return [row.split("\t")[:3] + row.split("\t")[4:] for row in rows]


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
    assert log(killed) == log(whole)
    pairs = zip(
        checkpoints.list_checkpoints(whole / "checkpoints"),
        checkpoints.list_checkpoints(killed / "checkpoints"),
        strict=True,
    )
    steps = []
    for one, other in pairs:
        steps.append(one.step)
        expected, actual = tensors(one), tensors(other)
        assert expected.keys() == actual.keys()
        for tensor, value in expected.items():
            np.testing.assert_array_equal(actual[tensor], value, err_msg=tensor)
    assert steps == [3, 6, 9, 10]
