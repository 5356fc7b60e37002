"""Tests of the WMT problems with a local data set in TFDS's format, without network."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import pytest

from t2t_repro import problems
from t2t_repro.problems import wmt
from t2t_repro.system.errors import UserError
from tests.tfds_local import write_local_dataset

_SPLITS = {
    "train": [(f"sentence {n}", f"Satz {n} für „uns“") for n in range(1500)],
    "validation": [("yes", "ja"), ("no", "nein")],
    "test": [(f"line {n}", f"Zeile {n}") for n in range(3003)],
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Data directory with a local `wmt14_translate/de-en`."""
    data_dir = tmp_path_factory.mktemp("wmt")
    write_local_dataset(data_dir, _SPLITS)
    return data_dir


@pytest.fixture
def offline(monkeypatch):
    """Makes every host name lookup fail, as on a machine without a network."""

    def unknown(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)


def test_reads_a_prepared_data_set_from_english_to_german(data_dir, offline):
    problem = problems.create("translate_ende_wmt14", str(data_dir))
    assert list(problem.pairs("train")) == _SPLITS["train"]
    assert list(problem.pairs("val")) == _SPLITS["validation"]
    assert list(problem.pairs("test")) == _SPLITS["test"]


def test_description_names_newstest_only_at_its_size(data_dir):
    problem = problems.create("translate_ende_wmt14", str(data_dir))
    assert problem.description("test") == (
        "newstest2014, 3,003 lines, WMT14 full (TFDS wmt14_translate/de-en test)"
    )
    assert problem.description("val") == (
        "TFDS wmt14_translate/de-en validation, 2 lines: not newstest2013, which has "
        "3,000"
    )
    assert "1,500 lines: not the whole training set" in problem.description("train")


def test_reads_the_newest_version(data_dir, tmp_path):
    shutil.copytree(data_dir / "tfds", tmp_path / "tfds")
    folder = tmp_path / "tfds/wmt14_translate/de-en"
    shutil.copytree(folder / "1.0.0", folder / "1.0.0.incomplete")
    shutil.copytree(folder / "1.0.0", folder / "1.10.0")
    (folder / "1.2.0").mkdir()
    problem = wmt.WmtProblem("translate_ende_wmt14", str(tmp_path))
    assert problem._prepared == folder / "1.10.0"


def test_finds_a_data_set_in_the_default_folder_of_tfds(
    data_dir, tmp_path, monkeypatch
):
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir / "tfds"))
    problem = problems.create("translate_ende_wmt14", str(tmp_path / "elsewhere"))
    assert next(problem.pairs("test")) == tuple(_SPLITS["test"][0])
    other = problems.create("translate_ende_wmt14", str(data_dir / "tfds"))
    assert next(other.pairs("test")) == tuple(_SPLITS["test"][0])


def test_fingerprint_depends_on_the_training_data(data_dir, tmp_path):
    first = problems.create("translate_ende_wmt14", str(data_dir)).fingerprint()
    again = problems.create("translate_ende_wmt14", str(data_dir)).fingerprint()
    write_local_dataset(tmp_path, {**_SPLITS, "train": _SPLITS["train"][::-1]})
    other = problems.create("translate_ende_wmt14", str(tmp_path)).fingerprint()
    assert first == again
    assert first != other


def test_missing_data_set_offline_is_reported_with_the_remedy(tmp_path, offline):
    problem = problems.create("translate_ende_wmt14", str(tmp_path))
    start = time.monotonic()
    with pytest.raises(UserError) as caught:
        next(iter(problem.pairs("train")))
    assert time.monotonic() - start < 5
    message = str(caught.value)
    assert "\n" not in message
    assert "Name or service not known" in message
    assert 'tfds.builder("wmt14_translate/de-en", data_dir="tfds")' in message
    assert message.endswith(f"{tmp_path}/tfds/wmt14_translate/de-en")


def test_default_folder_is_that_of_tfds(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    assert wmt.WmtProblem("translate_ende_wmt14", None).tfds_dir == tmp_path
    monkeypatch.delenv("TFDS_DATA_DIR")
    expected = Path.home() / "tensorflow_datasets"
    assert wmt.WmtProblem("translate_ende_wmt14", None).tfds_dir == expected


def test_rejects_a_truncated_copy(data_dir, tmp_path, offline):
    shutil.copytree(data_dir / "tfds", tmp_path / "tfds")
    folder = tmp_path / "tfds/wmt14_translate/de-en/1.0.0"
    train = next(folder.glob("*train*"))
    train.write_bytes(train.read_bytes()[:-5])
    next(folder.glob("*test*")).unlink()
    problem = problems.create("translate_ende_wmt14", str(tmp_path))
    for split in ("train", "test"):
        with pytest.raises(UserError, match="missing or damaged"):
            list(problem.pairs(split))
    (folder / "features.json").unlink()
    problem = problems.create("translate_ende_wmt14", str(tmp_path))
    with pytest.raises(UserError, match="not a readable TFDS data set"):
        list(problem.pairs("val"))


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("translate_ende_wmt14", ("en", "de")),
        ("translate_enfr_wmt14", ("en", "fr")),
        ("translate_ende_wmt_t2t", ("en", "de")),
    ],
)
def test_each_problem_requests_its_data_set_from_tfds(
    name, languages, tmp_path, monkeypatch
):
    import tensorflow_datasets as tfds

    # TFDS's mock has the features of the real builders and random text.
    monkeypatch.setattr(wmt, "_require_network", lambda: None)
    with tfds.testing.mock_data(num_examples=5):
        problem = problems.create(name, str(tmp_path))
        pairs = list(problem.pairs("train"))
    assert (problem.source_lang, problem.target_lang) == languages
    assert len(pairs) == 5


def test_rejects_an_unknown_split(data_dir):
    problem = problems.create("translate_ende_wmt14", str(data_dir))
    with pytest.raises(UserError, match="'dev': it must be one of"):
        list(problem.pairs("dev"))
