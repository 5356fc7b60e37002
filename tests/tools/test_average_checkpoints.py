"""The tool that averages checkpoints named one by one."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.runs.checkpoints import open_checkpoint, save

TOOL = Path(__file__).resolve().parents[2] / "tools" / "average_checkpoints.py"


@pytest.mark.medium
def test_it_averages_what_it_is_given_and_nothing_else(tmp_path):
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        save(tmp_path / "all", step, {"x": np.full((2,), value, "float32")})
    first, last = (str(tmp_path / f"all/step-0000000{step}") for step in (1, 3))

    def run(*arguments):
        command = [sys.executable, str(TOOL), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(first, last, "--output_dir", str(tmp_path / "mean"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["averaged_steps"] == [1, 3]
    averaged = open_checkpoint(tmp_path / "mean").tensors()
    np.testing.assert_array_equal(averaged.read("x"), [3.5, 3.5])

    refused = run(first, "--output_dir", str(tmp_path / "all"))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "exists and is not a checkpoint" in refused.stderr
