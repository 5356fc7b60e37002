"""Tests of the comparison with tensor2tensor's reference data."""

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
    process = run_command.run(tool, f"--golden_dir={folder}", "--json")
    return process.status, json.loads(process.out or "{}"), process.err


def check_all(folder):
    """Asserts that all files of a folder are checked, and all arrays reproduced."""
    status, result, errors = check(folder)
    assert (status, errors) == (0, "")
    assert result["passed"]
    files = {entry["file"].split("/")[0] for entry in result["arrays"]}
    expected = {p.name for p in folder.iterdir() if p.is_dir()}
    expected |= {p.name for p in folder.iterdir() if p.suffix in (".npz", ".json")}
    assert files == expected


@pytest.mark.slow
def test_reproduces_all_arrays_of_tensor2tensor(shared_dir):
    check_all(shared_dir / "t2t" / "golden")


def test_reproduces_files_of_each_kind(shared_dir, tmp_path):
    """Leaves out cases whose models and steps other tests compare."""
    counts = "parameter_counts_vocab37000.json"
    cases = {f"v1_{case}.npz" for case in ("dk", "posemb")}
    cases |= {f"v3_{case}.npz" for case in ("prenorm", "unshared", "enc3dec1_1shard")}
    cases |= {"v3_notargetspace_vocabdiv.npz", "relative.npz", "train_v3.npz"}
    for path in (shared_dir / "t2t" / "golden").iterdir():
        if path.name == counts:
            base = {
                "transformer_base": json.loads(path.read_text())["transformer_base"]
            }
            (tmp_path / counts).write_text(json.dumps(base))
        elif path.name not in cases:
            (tmp_path / path.name).symlink_to(path)
    check_all(tmp_path)


def check_modified(tmp_path, change):
    """Checks a modified copy of the reference data for beam search."""
    with np.load(SEARCHES) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    np.savez(tmp_path / "searches.npz", **arrays)
    return check(tmp_path)


def test_names_an_array_that_differs(tmp_path):
    def change(arrays):
        name = next(name for name in arrays if name.endswith("/scores"))
        arrays[name][0, 0] += 0.01

    status, result, errors = check_modified(tmp_path, change)
    assert status == 2
    assert result["failed"] == 1
    (wrong,) = (entry for entry in result["arrays"] if not entry["passed"])
    assert wrong["array"] in errors
    assert wrong["array"].endswith("/scores")


def test_names_an_array_that_is_not_used(tmp_path):
    status, result, errors = check_modified(
        tmp_path, lambda arrays: arrays.update(odd=np.zeros(2))
    )
    assert (status, result["failed"]) == (2, 1)
    assert "searches.npz odd" in errors


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.npz", b"PK", "damaged"),
        ("x.json", b"{", "not JSON"),
        ("x.json", b'{"a": 1}', "match no known kind"),
        ("x.bin", b"1", "unknown kind of file"),
    ],
)
def test_reports_an_invalid_file_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    status, _, errors = check(tmp_path)
    assert status == 2
    assert words in errors
    assert name in errors
    assert errors.count("\n") == 1


def test_reports_an_empty_or_missing_folder_in_one_line(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        status, _, errors = check(folder)
        assert (status, errors.count("\n")) == (2, 1)
