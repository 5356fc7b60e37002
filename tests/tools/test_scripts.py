"""Tests of the shell scripts: syntax, help and unsuitable interpreters."""

from __future__ import annotations

import os
import shutil
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


@pytest.mark.parametrize("name", SCRIPTS)
def test_reports_an_old_interpreter(name, tmp_path):
    old = tmp_path / "old python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.7.1\nexit 1\n')
    old.chmod(0o755)
    process = bash(str(ROOT / name), PYTHON=str(old))
    assert process.returncode == 2
    assert "is Python 3.7.1; Python 3.11, 3.12 or 3.13 is needed" in process.stderr


def test_quickstart_rejects_arguments():
    process = bash(str(ROOT / "tools/quickstart.sh"), "--fast")
    assert process.returncode == 2
    assert "unknown argument --fast" in process.stderr


def test_requirements_fingerprint_ignores_settings_of_the_checks(tmp_path):
    copy = tmp_path / "a checkout"
    (copy / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools/environment.sh", copy / "tools")
    command = f'source "{copy}/tools/environment.sh"; BASE_PYTHON=python3; '
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    fingerprints = []
    for changed in (
        text,
        text.replace("testpaths = tests", "testpaths = spec"),
        text.replace("pyyaml>=6.0.2", "pyyaml>=6.0.3"),
    ):
        (copy / "setup.cfg").write_text(changed, encoding="utf-8")
        process = bash("-c", command + "requirements_fingerprint")
        assert len(process.stdout.strip()) == 64, process.stderr
        fingerprints.append(process.stdout)
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
