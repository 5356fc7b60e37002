"""Tests of the message about a GPU that TensorFlow cannot use, in subprocesses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fork_server

ROOT = Path(__file__).resolve().parents[2]
# Runs the unchanged command with another pattern of device files.
RUN = """
import sys
from t2t_repro.system import gpus
gpus.DEVICE_FILES = sys.argv.pop(1)
from t2t_repro import train
from t2t_repro.command_line import cli
cli.run(train.main)
"""


def run(device_files, python=sys.executable, **environment):
    """Runs `train` with an invalid --strategy; returns the lines of standard error.

    The command imports TensorFlow, unless `python` has done so, and then stops.
    """
    arguments = ["--hparams", "tiny", "--strategy", "none"]
    return subprocess.run(
        [python, "-c", RUN, str(device_files), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    ).stderr.splitlines()


@pytest.mark.medium
def test_reports_the_cause_of_an_unusable_gpu(tmp_path):
    (tmp_path / "nvidia0").touch()
    pattern = tmp_path / "nvidia[0-9]*"
    first, *others = run(pattern)
    assert first.startswith(f"cannot use the GPU ({tmp_path}/nvidia0): ")
    assert "Failed call to cuInit: UNKNOWN ERROR (303)" in first
    assert "install NVIDIA's driver" in first
    assert not any("cannot use the GPU" in line for line in others)
    # A GPU that the user has hidden is not reported.
    hidden = run(pattern, fork_server.python(), CUDA_VISIBLE_DEVICES="-1")
    assert len(hidden) == 1
    assert hidden[0].startswith("error: ")


@pytest.mark.medium
def test_reports_nothing_without_a_gpu(tmp_path):
    (message,) = run(tmp_path / "nvidia[0-9]*", fork_server.python())
    assert message.startswith("error: ")
