"""Tests of the tool that averages given checkpoints."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.runs.checkpoints import open_checkpoint, save

TOOL = Path(__file__).resolve().parents[2] / "tools" / "average_checkpoints.py"


@pytest.mark.medium
def test_averages_only_the_given_checkpoints(forked_python, tmp_path):
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        save(tmp_path / "all", step, {"x": np.full((2,), value, "float32")})
    first, last = (str(tmp_path / f"all/step-0000000{step}") for step in (1, 3))

    def run(*arguments):
        command = [sys.executable, str(TOOL), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    process = run(first, last, "--output_dir", str(tmp_path / "mean"), "--json")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["averaged_steps"] == [1, 3]
    averaged = open_checkpoint(tmp_path / "mean").tensors()
    np.testing.assert_array_equal(averaged.read("x"), [3.5, 3.5])

    rejected = run(first, "--output_dir", str(tmp_path / "all"))
    assert rejected.returncode == 2
    assert rejected.stderr.count("\n") == 1
    assert "exists and is not a checkpoint" in rejected.stderr
