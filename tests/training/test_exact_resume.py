"""Tests that a killed and resumed training is bit-identical to an uninterrupted one.

Each training runs in its own process, because a process can have only one strategy.
"""

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.runs import checkpoints
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from tests.run_command import ROOT
from tests.training import toy

NEVER = 1000
RUN = """
import sys
from pathlib import Path
from tests.training.test_exact_resume import train
train(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


def train(directory, name, kill_at):
    """Trains ten steps with dropout; kills itself when it requests batch `kill_at`.

    A batch has three micro-batches, of which one replica computes two.
    """
    chosen = strategy.choose(name, 2 if name == "mirrored" else 0)
    assert chosen.num_replicas_in_sync == (2 if name == "mirrored" else 1)
    hparams = toy.HPARAMS.replace(
        train_steps=10, checkpoint_steps=3, max_tokens_per_device=24
    )
    with chosen.scope():
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, directory / "checkpoints")
    start = loop.restore()
    print("from", start)

    def batches(step):
        for number in count(step):
            if number == kill_at:
                # The checkpoint of step 6 is written in the background.
                while not (loop.checkpoint_dir / "step-00000006").exists():
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            yield toy.batch(number, parts=3)

    directory.mkdir(exist_ok=True)
    monitor = Monitor(directory, 10, start, sys.stderr, loop.unreported)
    assert loop.run(batches, monitor, toy.never)


def process(directory, name, kill_at=NEVER):
    arguments = [sys.executable, "-c", RUN, str(directory), name, str(kill_at)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(arguments, cwd=ROOT, **pipes)


def finish(running):
    out, errors = running.communicate()
    return running.returncode, out, errors[-2000:]


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
@pytest.mark.parametrize("name", ["one_device", "mirrored"])
def test_a_killed_training_resumes_bit_identically(tmp_path, name):
    running = process(tmp_path / "whole", name)
    killed = process(tmp_path / "killed", name, kill_at=8)
    assert finish(killed)[:2] == (-signal.SIGKILL, "from 0\n")
    assert finish(running)[0] == 0
    # Steps 7 and 8 are repeated; the log has the mean over all ten steps.
    status, out, errors = finish(process(tmp_path / "killed", name))
    assert (status, out) == (0, "from 6\n"), errors
    assert log(tmp_path / "killed") == log(tmp_path / "whole")
    pairs = zip(
        checkpoints.list_checkpoints(tmp_path / "whole" / "checkpoints"),
        checkpoints.list_checkpoints(tmp_path / "killed" / "checkpoints"),
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
