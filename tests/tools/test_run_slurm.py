"""The example script for Slurm in a real Slurm; `test_sbatch.py` simulates one."""

import json
import os
import shutil
import sys

import pytest

from tests import run_command


@pytest.mark.slow
def test_the_example_is_requeued_and_resumes_with_identical_bits():
    programs = ["unshare", "nsenter", "ip", "slurmctld", "slurmd", "munged"]
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)}: not installed")
    if os.geteuid():
        pytest.skip("Linux namespaces require root's rights")
    flags = ["--ways", "limit,group", "--json"]
    result = run_command.run_alone("tools/run_slurm.py", *flags, python=sys.executable)
    assert result.status == 0, result.err
    trials = json.loads(result.out)["trials"]
    assert {name: trial["outcome"] for name, trial in trials.items()} == {
        "reference": "COMPLETED, requeues: 0",
        "limit": "COMPLETED, requeues: 1",
        "group": "COMPLETED, requeues: 1",
    }
    assert all(trial["compared"] > 0 for trial in trials.values())
