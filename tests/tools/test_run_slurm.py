"""The examples for Slurm in a real Slurm; `test_sbatch.py` simulates one."""

import pytest

from tests.tools import harness


def run_example(flags):
    programs = "slurmctld", "slurmd", "munged"
    return harness.run_trials("tools/run_slurm.py", flags, *programs)


@pytest.mark.slow
def test_the_example_is_requeued_and_resumes_with_identical_bits():
    trials = run_example("--ways limit,group")
    assert {name: trial["outcome"] for name, trial in trials.items()} == {
        "reference": "COMPLETED, requeues: 0",
        "limit": "COMPLETED, requeues: 1",
        "group": "COMPLETED, requeues: 1",
    }
    assert all(trial["compared"] > 0 for trial in trials.values())


@pytest.mark.slow
def test_an_interrupted_part_of_datagen_is_requeued_with_identical_files():
    trials = run_example("--example datagen --ways requeue,crash")
    assert {name: trial["outcome"] for name, trial in trials.items()} == {
        "reference": "one process, files identical",
        "requeue": "COMPLETED, requeues: 1, files identical",
        "crash": "COMPLETED, requeues: 1, files identical",
    }
