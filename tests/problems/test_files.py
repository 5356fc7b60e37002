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
    for split, ending in (("train", ".7z"), ("val", "")):
        for lang in ("en", "de"):
            path = folder / f"{split}.{lang}"
            name = f"{path.name}.7z" if ending else f"{split}.europarl.{lang}"
            path.rename(folder / name)
    with pytest.raises(
        UserError,
        match=r"holds train\.de\.7z, train\.en\.7z; rename files to train\.LANGUAGE, "
        r"such as train\.en, and decompress them$",
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


TMX = """<tmx version="1.4"><body>
<tu><tuv xml:lang="en-GB"><seg>one</seg></tuv><tuv xml:lang="de"><seg>eins</seg></tuv>
</tu><tu><tuv xml:lang="en"><seg>only English</seg></tuv></tu></body></tmx>"""


def test_fingerprint_of_plain_text_is_that_of_earlier_versions(folder):
    # Computed by revision 9b032ad.
    digest = "b6095a5c21c993863bc758ca43b5d68941d704f0904746fd5db43cc5f33e64ad"
    assert _create(folder).fingerprint() == f"files:en-de:{digest}"


def test_pair_files_are_read_in_the_order_of_their_names(folder):
    for lang in ("en", "de"):
        (folder / f"train.{lang}").unlink()
    (folder / "train.b.tsv.gz").write_bytes(gzip.compress(b"two\tzwei\n"))
    (folder / "train.a.tmx").write_text(TMX)
    problem = _create(folder)
    assert list(problem.pairs("train")) == [("one", "eins"), ("two", "zwei")]
    assert problem.description("train") == (
        "train.a.tmx: 1 pair of 2 units (en-GB 1, de 1); "
        "train.b.tsv.gz: 1 pair of 1 unit"
    )
    assert _create(folder).description("train") == problem.description("train")
    assert problem.description("val") == "val.en and val.de, 2 lines"
    before = problem.fingerprint()
    (folder / "train.a.tmx").write_text(TMX.replace("eins", "Eins"))
    assert problem.fingerprint() != before


def test_pair_files_need_both_languages(folder):
    for path in folder.iterdir():
        path.unlink()
    (folder / "train.tmx").write_text(TMX)
    for languages in ((None, None), ("en", None)):
        with pytest.raises(
            UserError, match=r"source_lang and .*: .* holds train\.tmx$"
        ):
            _create(folder, *languages)
    assert list(_create(folder, "de", "en").pairs("train")) == [("eins", "one")]


def test_pair_files_and_parallel_files_of_a_split_are_ambiguous(folder):
    (folder / "val.tmx").write_text(TMX)
    with pytest.raises(UserError, match=r"holds val\.tmx and val\.de, but the val sp"):
        list(_create(folder).pairs("val"))
    assert next(_create(folder).pairs("train")) == ("en train 0", "de train 0")


def test_fingerprint_includes_texts_in_other_files(folder):
    for lang, kind in (("en", "src"), ("de", "ref")):
        (folder / f"train.{lang}").unlink()
        (folder / f"train.{kind}.{lang}.sgm").write_text(
            f'<{kind}set><doc docid="1"><seg id="1">{lang}</seg></doc></{kind}set>'
        )
    problem = _create(folder, "en", "de")
    assert list(problem.pairs("train")) == [("en", "de")]
    before = problem.fingerprint()
    path = folder / "train.ref.de.sgm"
    path.write_text(path.read_text().replace(">de<", ">anders<"))
    assert problem.fingerprint() != before
