"""Environments of their own are made once, and what pip says is one line."""

import subprocess

import pytest
from environments import make_environment

from t2t_repro.system.errors import UserError


@pytest.mark.medium
def test_an_environment_is_made_once_and_anew_for_other_packages(tmp_path):
    folder = tmp_path / "environment"
    python = make_environment(folder)
    kept = folder / "kept"
    kept.touch()
    assert make_environment(folder) == python
    assert kept.exists()
    with pytest.raises(UserError, match=r"^pip cannot install /no/such: .*not exist"):
        make_environment(folder, ["/no/such"])
    assert not kept.exists()
    # What failed half-way is not taken for made.
    with pytest.raises(UserError, match=r"^pip cannot install --no-index x"):
        make_environment(folder, ["--no-index", "x"])
    version = [make_environment(folder), "-c", "import sys; print(sys.prefix)"]
    done = subprocess.run(version, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder)
