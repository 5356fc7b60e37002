"""The comparison with tensor2tensor's vectors, on vectors and on spoilt ones."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests import run_command

pytestmark = pytest.mark.medium

SEARCHES = run_command.ROOT / "tests" / "data" / "golden" / "beam_search_only.npz"


def check(folder: Path) -> tuple[int, dict, str]:
    """Returns exit status, result and standard error of the tool."""
    tool = "tools/check_golden.py"
    done = run_command.run(tool, f"--golden_dir={folder}", "--json")
    return done.status, json.loads(done.out or "{}"), done.err


@pytest.mark.medium
def test_every_array_of_tensor2tensor_is_reproduced(shared_dir):
    golden = shared_dir / "t2t" / "golden"
    status, result, errors = check(golden)
    assert (status, errors) == (0, "")
    assert result["passed"]
    files = {entry["file"].split("/")[0] for entry in result["arrays"]}
    kept = {p.name for p in golden.iterdir() if p.is_dir()}
    kept |= {p.name for p in golden.iterdir() if p.suffix in (".npz", ".json")}
    assert files == kept


def spoilt(tmp_path, change):
    """Writes the searches, changed, into a folder of their own."""
    with np.load(SEARCHES) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(tmp_path / "searches.npz", **arrays)
    return check(tmp_path)


def test_an_altered_array_is_named(tmp_path):
    def change(arrays):
        name = next(name for name in arrays if name.endswith("/scores"))
        arrays[name][0, 0] += 0.01

    status, result, errors = spoilt(tmp_path, change)
    assert status == 2
    assert result["failed"] == 1
    (wrong,) = (entry for entry in result["arrays"] if not entry["passed"])
    assert wrong["array"] in errors
    assert wrong["array"].endswith("/scores")


def test_an_array_that_nobody_looks_at_is_named(tmp_path):
    status, result, errors = spoilt(
        tmp_path, lambda arrays: arrays.update(odd=np.zeros(2))
    )
    assert (status, result["failed"]) == (2, 1)
    assert "searches.npz odd" in errors


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.npz", b"PK", "damaged"),
        ("x.json", b"{", "not JSON"),
        ("x.json", b'{"a": 1}', "of no kind that is known"),
        ("x.bin", b"1", "nobody knows what to do with this file"),
    ],
)
def test_a_file_that_cannot_be_checked_is_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    status, _, errors = check(tmp_path)
    assert status == 2
    assert words in errors
    assert name in errors
    assert errors.count("\n") == 1


def test_an_empty_or_missing_folder_is_one_line(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        status, _, errors = check(folder)
        assert (status, errors.count("\n")) == (2, 1)
