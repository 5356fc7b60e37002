"""The export runs under another minor version of TensorFlow."""

import json

import pytest
from check_tensorflow_version import compare

from tests import run_command

TOOL = "tools/check_tensorflow_version.py"


def test_texts_are_counted_and_numbers_measured():
    ours = [{"translations": ["a", "b"], "scores": [1.0, 2.0]}]
    assert compare(ours, ours) == (0, 0.0)
    theirs = [{"translations": ["a", "c"], "scores": [1.0, 1.75]}]
    assert compare(ours, theirs) == (1, 0.25)


def test_a_folder_without_versions_is_one_line(tmp_path):
    done = run_command.run(TOOL, "--export_dir", str(tmp_path))
    assert run_command.is_one_clear_line(done)
    assert "holds no version; make one with" in done.err


@pytest.mark.slow
def test_an_export_of_today_runs_under_tensorflow_2_20(trained, tmp_path):
    """Installs some 2 GB."""
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path / "e"))
    assert run_command.run("export", *flags).status == 0
    flags = ("--export_dir", str(tmp_path / "e"), "--json")
    done = run_command.run(TOOL, *flags, "--environment", str(tmp_path / "environment"))
    if "pip cannot install" in done.err:
        pytest.skip(done.err.strip())
    assert done.status == 0, done.err + done.out
    found = json.loads(done.out)
    assert found["tensorflow"].startswith("2.20.")
    assert found["different_texts"] == 0
