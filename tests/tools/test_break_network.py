"""Two workers whose network is cut for a short time, and for good."""

import pytest

from tests.tools import harness


@pytest.mark.slow
def test_training_survives_or_stops_and_resumes_with_identical_bits():
    flags = "--outages 2,0 --ways drop"
    trials = harness.run_trials("tools/break_network.py", flags)
    assert trials["drop-2"]["outcome"] == "continued"
    assert trials["drop-0"]["outcome"].startswith("stopped with an error after")
    assert all(trial["compared"] > 0 for trial in trials.values())
