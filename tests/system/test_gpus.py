"""A GPU that is there and cannot be used is told in one line, in a real process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The command as it is, but for the place where the driver shows its GPUs.
RUN = """
import sys
from t2t_repro.system import gpus
gpus.DEVICE_FILES = sys.argv.pop(1)
from t2t_repro import train
from t2t_repro.command_line import cli
cli.run(train.main)
"""


def run(device_files, **environment):
    """Trains with a strategy that is none: TensorFlow starts, nothing else."""
    arguments = ["--hparams", "tiny", "--strategy", "none"]
    return subprocess.run(
        [sys.executable, "-c", RUN, str(device_files), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    ).stderr.splitlines()


@pytest.mark.medium
def test_a_gpu_that_cannot_be_used_is_told_with_the_cause(tmp_path):
    (tmp_path / "nvidia0").touch()
    pattern = tmp_path / "nvidia[0-9]*"
    first, *others = run(pattern)
    assert first.startswith(f"a GPU is there ({tmp_path}/nvidia0) but not used: ")
    assert "Failed call to cuInit: UNKNOWN ERROR (303)" in first
    assert "install NVIDIA's driver" in first
    assert not any("a GPU is there" in line for line in others)
    # Who hides the GPU knows of it.
    hidden = run(pattern, CUDA_VISIBLE_DEVICES="-1")
    assert len(hidden) == 1
    assert hidden[0].startswith("error: ")


@pytest.mark.medium
def test_without_a_gpu_nothing_is_said(tmp_path):
    (said,) = run(tmp_path / "nvidia[0-9]*")
    assert said.startswith("error: ")
