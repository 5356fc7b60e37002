"""Tests of exports under another minor version of TensorFlow."""

import json

import pytest
from check_tensorflow_version import compare

from tests import run_command

TOOL = "tools/check_tensorflow_version.py"


def test_counts_different_texts_and_measures_numbers():
    ours = [{"translations": ["a", "b"], "scores": [1.0, 2.0]}]
    assert compare(ours, ours) == (0, 0.0)
    theirs = [{"translations": ["a", "c"], "scores": [1.0, 1.75]}]
    assert compare(ours, theirs) == (1, 0.25)


def test_rejects_a_folder_without_versions(tmp_path):
    result = run_command.run(TOOL, "--export_dir", str(tmp_path))
    assert run_command.is_one_clear_line(result)
    assert "lacks an exported version; create one with" in result.err


@pytest.mark.slow
def test_an_export_runs_under_tensorflow_2_20(trained, tmp_path):
    """Downloads about 2 GB."""
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path / "e"))
    assert run_command.run("export", *flags).status == 0
    flags = ("--export_dir", str(tmp_path / "e"), "--json")
    flags += ("--environment", str(tmp_path / "environment"))
    process = run_command.run(TOOL, *flags)
    if "pip cannot install" in process.err:
        pytest.skip(process.err.strip())
    assert process.status == 0, process.err + process.out
    result = json.loads(process.out)
    assert result["tensorflow"].startswith("2.20.")
    assert result["different_texts"] == 0
