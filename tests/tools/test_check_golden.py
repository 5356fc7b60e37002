"""Tests of the comparison with tensor2tensor's reference data."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from golden_checks import model_cases
from golden_checks.rounding import Additions, model_additions, tolerance
from golden_checks.sheet import Sheet, largest_magnitude

from t2t_repro.hparams import HParams
from tests import run_command

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


@pytest.mark.medium
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


def multiply_a_score(arrays):
    name = next(name for name in arrays if name.endswith("/scores"))
    arrays[name][0, 0] *= 1.0001


@pytest.mark.medium
def test_names_an_array_that_differs(tmp_path):
    status, result, errors = check_modified(tmp_path, multiply_a_score)
    assert status == 2
    assert result["failed"] == 1
    (wrong,) = (entry for entry in result["arrays"] if not entry["passed"])
    assert wrong["array"] in errors
    assert wrong["array"].endswith("/scores")


@pytest.mark.medium
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
        ("x.json", b'{"a": 1}', "match no known kind"),
    ],
)
def test_reports_an_invalid_file_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    status, _, errors = check(tmp_path)
    assert status == 2
    assert words in errors
    assert name in errors
    assert errors.count("\n") == 1


def test_tolerance_grows_with_the_magnitude_and_the_root_of_the_additions():
    # From 128 to 256, the distance of two float32 numbers is 2^-16.
    assert tolerance(128, 1) == 2**-16
    assert tolerance(128, 16) == 2**-14
    assert tolerance(1e9, 0) == 0


def test_sums_in_two_orders_differ_by_less_than_the_tolerance():
    values = np.random.default_rng(1).uniform(0, 1, 4096).astype(np.float32)
    # The last partial sum; np.sum would add in pairs.
    ahead, back = (np.add.accumulate(each)[-1] for each in (values, values[::-1]))
    exact = math.fsum(values)
    assert 0 < abs(float(ahead) - float(back)) < tolerance(exact, 4096) < 1e-5 * exact


def test_additions_of_a_model_equal_manual_arithmetic():
    """Three rows of 5 positions; one layer with d = 8, d_ff = 12, 2 heads and V = 10.

    Attention: 8 + 4 + 5 + 5 + 8 = 30. Feed-forward network: 8 + 12 = 20.
    Normalization: 16. Position signal: 4.
    """
    hparams = HParams(d_model=8, d_ff=12, num_heads=2, num_layers=1)
    encoder = 4 + 30 + 16 + 20 + 16 + 16
    decoder = encoder + 2 * 30 + 20 + 3 * 16 + 16
    losses = decoder + 8 + 10
    expected = Additions(encoder, decoder, decoder + 8, losses, 2 * losses + 15)
    assert model_additions(hparams, (3, 5), 10) == expected


@pytest.mark.medium
def test_refuses_small_errors(shared_dir, monkeypatch):
    path = shared_dir / "t2t/golden/v3_prenorm.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    sheet = Sheet(path.name, arrays)
    model_cases.check(sheet)
    compared = [each for each in sheet.findings() if each.tolerance]
    assert len(compared) == 18
    for each in compared:
        # A relative error of 1e-4 in the largest element exceeds the tolerance.
        error = 1e-4 * largest_magnitude(arrays[each.array])
        assert each.difference <= each.tolerance < error - each.difference, each

    # Layer normalization with PyTorch's epsilon, 1e-5 instead of 1e-6.
    to_hparams = model_cases.translate_hparams

    def another_epsilon(*arguments):
        return to_hparams(*arguments).replace(norm_epsilon=1e-5)

    monkeypatch.setattr(model_cases, "translate_hparams", another_epsilon)
    del arrays["decode_extra_length"]  # Omits the searches.
    wrong = Sheet(path.name, arrays)
    model_cases.check(wrong)
    failed = {each.array for each in wrong.findings() if not each.passed}
    assert failed >= {"decoder_output", "logits"}
