"""Tests of the shell scripts: syntax, help and unsuitable interpreters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ["tools/test.sh", "tools/quickstart.sh"]


def bash(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", *arguments],
        cwd="/",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", [*SCRIPTS, "tools/environment.sh", ".ci/run"])
def test_scripts_are_valid_bash(name):
    assert bash("-n", str(ROOT / name)).returncode == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_prints_only_the_usage(name):
    process = bash(str(ROOT / name), "--help")
    assert process.returncode == 0
    assert f"bash {name}" in process.stdout
    assert "===" not in process.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_reports_a_missing_interpreter_in_one_line(name):
    process = bash(str(ROOT / name), PYTHON="/no/such/python")
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "PYTHON=/no/such/python not found" in process.stderr
