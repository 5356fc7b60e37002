"""The export runs under another minor version of TensorFlow."""

import json
import subprocess
import sys

import pytest
from check_tensorflow_version import compare

from tests import run_command

TOOL = run_command.ROOT / "tools" / "check_tensorflow_version.py"


def test_texts_are_counted_and_numbers_measured():
    ours = [{"translations": ["a", "b"], "scores": [1.0, 2.0]}]
    assert compare(ours, ours) == (0, 0.0)
    theirs = [{"translations": ["a", "c"], "scores": [1.0, 1.75]}]
    assert compare(ours, theirs) == (1, 0.25)


def test_a_folder_without_versions_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, TOOL, "--export_dir", tmp_path],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert "holds no version; make one with" in done.stderr


@pytest.mark.slow
def test_an_export_of_today_runs_under_tensorflow_2_20(trained, tmp_path):
    """Installs some 2 GB."""
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path / "e"))
    assert run_command.run("export", *flags).status == 0
    environment = ("--environment", tmp_path / "environment")
    done = subprocess.run(
        [sys.executable, TOOL, "--export_dir", tmp_path / "e", *environment, "--json"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if "pip cannot install it" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert found["tensorflow"].startswith("2.20.")
    assert found["different_texts"] == 0
