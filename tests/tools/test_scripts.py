"""The shell scripts: they parse, help, and refuse an unsuitable interpreter."""

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
def test_a_script_is_valid_bash(name):
    assert bash("-n", str(ROOT / name)).returncode == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_says_how_to_run_it_and_does_nothing_else(name):
    done = bash(str(ROOT / name), "--help")
    assert done.returncode == 0
    assert f"bash {name}" in done.stdout
    assert "===" not in done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_missing_interpreter_is_one_clear_line(name):
    done = bash(str(ROOT / name), PYTHON="/no/such/python")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "PYTHON=/no/such/python not found" in done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_old_interpreter_is_one_clear_line(name, tmp_path):
    old = tmp_path / "old python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.7.1\nexit 1\n')
    old.chmod(0o755)
    done = bash(str(ROOT / name), PYTHON=str(old))
    assert done.returncode == 2
    assert "is Python 3.7.1; Python 3.11, 3.12 or 3.13 is needed" in done.stderr


def test_quickstart_refuses_arguments_that_it_would_ignore():
    done = bash(str(ROOT / "tools/quickstart.sh"), "--fast")
    assert done.returncode == 2
    assert "unknown argument --fast" in done.stderr


def test_the_fingerprint_of_the_requirements_ignores_settings_of_the_checks(tmp_path):
    copy = tmp_path / "a checkout"
    (copy / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools/environment.sh", copy / "tools")
    command = f'source "{copy}/tools/environment.sh"; BASE_PYTHON=python3; '
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    prints = []
    for changed in (
        text,
        text.replace("testpaths = tests", "testpaths = spec"),
        text.replace("pyyaml>=6.0.2", "pyyaml>=6.0.3"),
    ):
        (copy / "setup.cfg").write_text(changed, encoding="utf-8")
        done = bash("-c", command + "requirements_fingerprint")
        assert len(done.stdout.strip()) == 64, done.stderr
        prints.append(done.stdout)
    assert prints[0] == prints[1] != prints[2]
