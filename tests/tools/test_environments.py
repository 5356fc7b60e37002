"""Tests of separate Python environments."""

import subprocess

import pytest
from environments import make_environment

from t2t_repro.system.errors import UserError


@pytest.mark.medium
def test_recreates_an_environment_only_for_other_packages(tmp_path):
    folder = tmp_path / "environment"
    python = make_environment(folder)
    marker = folder / "marker"
    marker.touch()
    assert make_environment(folder) == python
    assert marker.exists()
    words = r"^pip cannot install --no-index /no/such: .*not exist"
    with pytest.raises(UserError, match=words):
        make_environment(folder, ["--no-index", "/no/such"])
    assert not marker.exists()
    marker.touch()
    version = [make_environment(folder), "-c", "import sys; print(sys.prefix)"]
    process = subprocess.run(version, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(folder)
    # The incomplete environment was not reused.
    assert not marker.exists()
