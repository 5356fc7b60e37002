"""Tests of test sets that are read from files of pairs."""

import pytest

from t2t_repro.evaluation.test_sets import read_files
from t2t_repro.system.errors import UserError
from tests.formats import samples

SOURCES, TARGETS = map(list, zip(*samples.PAIRS, strict=True))


@pytest.fixture
def folder(tmp_path):
    samples.write(tmp_path)
    return tmp_path


def test_references_of_wmt_are_chosen_by_name(folder):
    path = str(folder / "set.xml")
    test_set = read_files(path, [path], ("en", "de"))
    assert (test_set.sources, test_set.references) == (SOURCES, [TARGETS])
    assert test_set.description == (
        "set.xml: 3 pairs of 3 units (en 3, de 3, reference A of A, B), 3 lines"
    )
    test_set = read_files(path, [path], ("en", "de"), ("B", "A"))
    assert (test_set.sources, test_set.references) == (SOURCES, [["x"] * 3, TARGETS])
    with pytest.raises(UserError, match="has no reference C; its references are A, B"):
        read_files(path, [path], ("en", "de"), ("C",))


def test_text_and_files_of_pairs_can_be_combined(folder):
    text = folder / "plain.de"
    text.write_text("eins\nzwei\ndrei\n")
    source = str(folder / "set-src.en.sgm")
    references = [str(folder / "set-ref.de.sgm"), str(text)]
    test_set = read_files(source, references, ("en", "de"))
    assert test_set.sources == SOURCES
    assert test_set.references == [TARGETS, ["eins", "zwei", "drei"]]
    text.write_text("eins\n")
    with pytest.raises(UserError, match=r"plain\.de has 1 line, expected 3 \(.*sgm\)"):
        read_files(source, references, ("en", "de"))


def test_files_of_pairs_need_both_languages(folder):
    path = str(folder / "memory.tmx")
    with pytest.raises(
        UserError, match=r"memory\.tmx may hold several languages; give"
    ):
        read_files(None, [path], (None, "de"))
