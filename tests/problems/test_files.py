"""Tests of the problem `files`: languages, splits and error messages."""

from __future__ import annotations

import gzip

import pytest

from t2t_repro import problems
from t2t_repro.system.errors import UserError


@pytest.fixture
def folder(tmp_path):
    """Folder with English and German files for every split."""
    for split, count in (("train", 3), ("val", 2), ("test", 1)):
        for lang in ("en", "de"):
            lines = "".join(f"{lang} {split} {n}\n" for n in range(count))
            (tmp_path / f"{split}.{lang}").write_text(lines)
    return tmp_path


def _create(folder, source_lang=None, target_lang=None):
    return problems.create("files", str(folder), source_lang, target_lang)


def test_pairs_are_in_the_order_of_the_files(folder):
    problem = _create(folder, "de", "en")
    assert list(problem.pairs("val")) == [
        ("de val 0", "en val 0"),
        ("de val 1", "en val 1"),
    ]
    assert problem.description("train") == "train.de and train.en, 3 lines"


def test_languages_default_to_english_and_german(folder):
    problem = _create(folder)
    assert (problem.source_lang, problem.target_lang) == ("en", "de")


def test_infers_the_second_of_two_languages(folder):
    assert _create(folder, source_lang="de").target_lang == "en"
    assert _create(folder, target_lang="en").source_lang == "de"


def test_ambiguous_languages_are_listed(folder):
    (folder / "train.fr.gz").touch()
    with pytest.raises(UserError, match=r"holds train\.de, train\.en, train\.fr$"):
        _create(folder)
    with pytest.raises(UserError, match="source_lang and target_lang"):
        _create(folder, source_lang="en")


def test_rejects_a_missing_folder(tmp_path):
    with pytest.raises(UserError, match="needs data_dir"):
        problems.create("files")
    with pytest.raises(UserError, match="not an existing folder"):
        _create(tmp_path / "absent")


@pytest.mark.parametrize("lang", ["", "../en", "e n", "en.gz"])
def test_rejects_a_malformed_language(folder, lang):
    with pytest.raises(UserError, match="source_lang"):
        _create(folder, lang, "de")


def test_missing_split_is_reported_by_file_name(folder):
    (folder / "test.de").unlink()
    with pytest.raises(UserError, match=r"test\.de does not exist .*found: test\.en$"):
        list(_create(folder).pairs("test"))


def test_files_with_unsuitable_names_are_listed_with_a_remedy(folder):
    for split, ending in (("train", ".xz"), ("val", "")):
        for lang in ("en", "de"):
            path = folder / f"{split}.{lang}"
            name = f"{path.name}.xz" if ending else f"{split}.europarl.{lang}"
            path.rename(folder / name)
    with pytest.raises(
        UserError,
        match=r"holds train\.de\.xz, train\.en\.xz; rename files to train\.LANGUAGE, "
        r"such as train\.en, and decompress them or use gzip$",
    ):
        _create(folder)
    with pytest.raises(
        UserError,
        match=r"found: val\.europarl\.de, val\.europarl\.en; rename files to "
        r"val\.LANGUAGE, such as val\.en$",
    ):
        list(_create(folder, "en", "de").pairs("val"))


def test_rejects_an_unknown_split(folder):
    with pytest.raises(UserError, match="'dev': it must be one of train, val, test"):
        list(_create(folder).pairs("dev"))


def test_reads_a_compressed_file_unless_both_exist(folder):
    text = (folder / "val.de").read_bytes()
    (folder / "val.de.gz").write_bytes(gzip.compress(text))
    with pytest.raises(UserError, match="both exist"):
        list(_create(folder).pairs("val"))
    (folder / "val.de").unlink()
    assert list(_create(folder).pairs("val"))[1] == ("en val 1", "de val 1")


def test_fingerprint_depends_on_training_text_and_direction(folder):
    before = _create(folder).fingerprint()
    assert _create(folder).fingerprint() == before
    assert _create(folder, "de", "en").fingerprint() != before
    with open(folder / "train.de", "a") as file:
        file.write("mehr\n")
    assert _create(folder).fingerprint() != before


def test_infers_the_languages_without_training_files(folder):
    for lang in ("en", "de"):
        (folder / f"train.{lang}").unlink()
    problem = _create(folder)
    assert (problem.source_lang, problem.target_lang) == ("en", "de")
    with pytest.raises(UserError, match=r"train\.en does not exist"):
        problem.fingerprint()
