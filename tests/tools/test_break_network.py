"""Two workers whose network is cut for a short time, and for good."""

import json
import os
import shutil
import sys

import pytest

from tests import run_command


@pytest.mark.slow
def test_training_survives_or_stops_and_resumes_with_identical_bits():
    programs = ["unshare", "nsenter", "ip"]
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)}: not installed")
    if os.geteuid():
        pytest.skip("Linux namespaces require root's rights")
    flags = ["--outages", "2,0", "--ways", "drop", "--json"]
    result = run_command.run_alone(
        "tools/break_network.py", *flags, python=sys.executable
    )
    assert result.status == 0, result.err
    trials = json.loads(result.out)["trials"]
    assert trials["drop-2"]["outcome"] == "continued"
    assert trials["drop-0"]["outcome"].startswith("stopped with an error after")
    assert all(trial["compared"] > 0 for trial in trials.values())
