"""Runs the harnesses whose machines are Linux namespaces."""

import json
import os
import shutil
import sys

import pytest

from tests import run_command


def run_trials(tool, flags, *programs):
    """Runs a harness; returns its trials by name, or skips the test.

    Args:
        tool: Path of the tool.
        flags: Its flags, separated by spaces.
        *programs: Programs that it needs besides those of `tools/machines.py`.
    """
    programs = ["unshare", "nsenter", "ip", *programs]
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)}: not installed")
    if os.geteuid():
        pytest.skip("Linux namespaces require root's rights")
    result = run_command.run_alone(
        tool, *flags.split(), "--json", python=sys.executable
    )
    assert result.status == 0, result.err
    return json.loads(result.out)["trials"]
