"""A training run with two worker processes: a request to save, and a kill.

`test_sbatch.py` stops a worker.
"""

import json
import random
import signal
import socket

import numpy as np
import pytest

from t2t_repro.runs import checkpoints
from t2t_repro.training.loop import STEPS_BETWEEN_REQUESTS
from tests import run_command, tiny

# Enough steps for the signal to arrive long before the end of training.
STEPS = 150
SETTINGS = f"train_steps={STEPS},checkpoint_steps=50,dropout=0.1,average_last=1"


def free_port():
    with socket.create_server(("localhost", 0)) as open_socket:
        return open_socket.getsockname()[1]


def by_tf_config():
    """Yields the environment variables of two workers with TF_CONFIG."""
    addresses = [f"localhost:{free_port()}" for _ in range(2)]
    for index in (0, 1):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": addresses}, "task": task}
        yield {"TF_CONFIG": json.dumps(config)}


def by_slurm():
    """Yields the environment variables of two Slurm tasks on one machine."""
    job = str(random.randrange(10_000))
    for index in (0, 1):
        yield {
            "SLURM_JOB_ID": job,
            "SLURM_PROCID": str(index),
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_STEP_TASKS_PER_NODE": "2",
        }


class TwoWorkers:
    """Two processes of the same command, which are killed on exit."""

    def __init__(self, monkeypatch, arguments, cluster):
        self.processes = []
        for environment in cluster:
            with monkeypatch.context() as patch:
                for name, value in environment.items():
                    patch.setenv(name, value)
                # Progress is on standard error; standard output has only the result.
                self.processes.append(run_command.start("train", *arguments))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def wait_for(self, text):
        """Waits until the chief's log contains a text; returns the line."""
        lines = []
        for line in self.processes[0].stderr:
            lines.append(line)
            if text in line:
                return line
        pytest.fail("".join(lines))

    def finish(self):
        """Waits for the processes and returns their results."""
        results = []
        for process in self.processes:
            out, err = process.communicate(timeout=240)
            results.append(run_command.Done(process.returncode, out, err))
        return results


def last_weights(folder):
    newest = checkpoints.list_checkpoints(folder / "model" / "checkpoints")[-1]
    assert newest.step == STEPS
    tensors = newest.tensors()
    return {name: tensors.read(name) for name in tensors.shapes()}


@pytest.mark.medium
def test_two_workers_survive_a_kill(tmp_path, monkeypatch):
    for name in ("workers", "mirrored"):
        tiny.write_corpus(tmp_path / name / "data")
        tiny.write_hparams(tmp_path / name)
    nothing = run_command.Done(0, "", "")
    flags = tiny.Trained(tmp_path / "workers", nothing).arguments(SETTINGS)

    with TwoWorkers(monkeypatch, flags, by_tf_config()) as workers:
        workers.wait_for("strategy multi_worker: 2 replicas on CPU")
        workers.wait_for(f"step 50/{STEPS}")
        workers.processes[1].send_signal(signal.SIGUSR1)
        saved = workers.wait_for("saved a checkpoint of step")
        workers.processes[1].kill()
        chief, killed = workers.finish()
        assert (chief.status, killed.status) == (75, -signal.SIGKILL)
        assert "error: another worker of this training has ended" in chief.err
        assert "Traceback" not in chief.err
        assert saved in killed.err
        step = int(saved.split()[5].strip(","))
        assert step % STEPS_BETWEEN_REQUESTS == 0

    with TwoWorkers(monkeypatch, flags, by_slurm()) as workers:
        workers.wait_for("resuming from step")
        chief, other = workers.finish()
        assert (chief.status, other.status) == (0, 0), (chief.err, other.err)
        assert json.loads(chief.out)["steps"] == STEPS
        assert "bleu" in json.loads(chief.out)
        assert json.loads(other.out) == {"problem": "files", "steps": STEPS}

    # An uninterrupted run with two replicas in one process has the same dropout masks.
    flags = tiny.Trained(tmp_path / "mirrored", nothing).arguments(SETTINGS)
    replicas = ["--strategy", "mirrored", "--replicas", "2"]
    result = run_command.run_alone("train", *flags, *replicas)
    assert result.status == 0, result.err
    expected = last_weights(tmp_path / "mirrored")
    for name, weights in last_weights(tmp_path / "workers").items():
        np.testing.assert_allclose(weights, expected[name], atol=1e-4, err_msg=name)
