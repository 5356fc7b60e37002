"""Tests of the message about a GPU that TensorFlow cannot use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_repro.system import gpus

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


@pytest.mark.medium
def test_the_cause_of_an_unusable_gpu_is_the_only_message_of_tensorflow(tmp_path):
    (tmp_path / "nvidia0").touch()
    # The command imports TensorFlow and then rejects --strategy.
    arguments = ["--hparams", "tiny", "--strategy", "none"]
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "nvidia[0-9]*"), *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    message, error = result.stderr.splitlines()
    assert message.startswith(f"cannot use the GPU ({tmp_path}/nvidia0): ")
    assert "Failed call to cuInit: UNKNOWN ERROR (303)" in message
    assert "install NVIDIA's driver" in message
    assert error.startswith("error: ")


@pytest.mark.parametrize(("name", "visible"), [("nvidia0", "-1"), ("other", "0")])
def test_a_hidden_gpu_or_none_is_not_reported(tmp_path, monkeypatch, name, visible):
    (tmp_path / name).touch()
    monkeypatch.setattr(gpus, "DEVICE_FILES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus.unused_reason() is None
