"""Tests of the parsing problems: layouts, sections, automatic parses and errors."""

from __future__ import annotations

import gzip

import pytest

from t2t_repro import problems
from t2t_repro.system.errors import UserError

SECTIONS = [f"{number:02}" for number in range(25)]


def tree(word):
    return f"( (S (NP-SBJ (NN {word}) )))\n"


@pytest.fixture
def plain(tmp_path):
    for split in ("train", "val", "test"):
        (tmp_path / f"{split}.trees").write_text(tree(split) * 2)
    return tmp_path


@pytest.fixture
def treebank(tmp_path):
    """Folder of all sections with two files each; a file's only word is its name."""
    for section in SECTIONS:
        folder = tmp_path / section
        folder.mkdir()
        (folder / "README").write_text("no tree\n")
        for number in ("01", "00"):
            name = f"wsj_{section}{number}.mrg"
            (folder / name).write_text(f"\n{tree(name)}")
    return tmp_path


def create(folder, name="parse_wsj"):
    return problems.create(name, str(folder))


def words(problem, split):
    return [source for source, _ in problem.pairs(split)]


def test_reads_plain_files(plain):
    problem = create(plain)
    assert (problem.source_lang, problem.target_lang) == ("en", "trees")
    assert list(problem.pairs("val")) == [("val", "S NP NN /NP /S")] * 2
    assert problem.description("test") == "test.trees, 2 trees"


def test_splits_are_sections_2_to_21_22_and_23(treebank):
    problem = create(treebank)
    train = words(problem, "train")
    assert len(train) == 40
    assert (train[0], train[1], train[-1]) == (
        "wsj_0200.mrg",
        "wsj_0201.mrg",
        "wsj_2101.mrg",
    )
    assert words(problem, "val") == ["wsj_2200.mrg", "wsj_2201.mrg"]
    assert words(problem, "test") == ["wsj_2300.mrg", "wsj_2301.mrg"]
    assert problem.description("train") == "sections 02-21, 40 trees"
    assert problem.description("test") == "section 23, 2 trees"


def test_reads_a_compressed_treebank_in_folder_wsj(treebank, tmp_path):
    for path in treebank.glob("23/*.mrg"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "wsj").symlink_to(treebank)
    assert words(create(outer), "test") == ["wsj_2300.mrg", "wsj_2301.mrg"]


def test_semi_supervised_training_includes_automatic_parses(plain):
    (plain / "semi.trees").write_text(tree("one"))
    (plain / "semi.more.trees.gz").write_bytes(gzip.compress(tree("two").encode()))
    problem = create(plain, "parse_wsj_semi")
    assert words(problem, "train") == ["train", "train", "two", "one"]
    assert words(problem, "val") == ["val", "val"]
    assert problem.description("train") == (
        "train.trees, semi.more.trees.gz, semi.trees, 4 trees"
    )
    assert words(create(plain), "train") == ["train", "train"]


def test_fingerprint_depends_on_the_training_trees(plain):
    before = create(plain).fingerprint()
    (plain / "test.trees").write_text(tree("other"))
    assert create(plain).fingerprint() == before
    (plain / "train.trees").write_text(tree("other"))
    assert create(plain).fingerprint() != before
    (plain / "semi.trees").write_text(tree("one"))
    semi = create(plain, "parse_wsj_semi").fingerprint()
    (plain / "semi.trees").write_text(tree("two"))
    assert create(plain, "parse_wsj_semi").fingerprint() != semi


def test_requires_a_folder_with_trees(tmp_path):
    with pytest.raises(UserError, match="parse_wsj needs data_dir"):
        problems.create("parse_wsj")
    with pytest.raises(UserError, match="absent is not a folder"):
        create(tmp_path / "absent")
    with pytest.raises(UserError, match=r"holds neither train.trees.* nor the tree"):
        create(tmp_path)


def test_rejects_other_languages(plain):
    with pytest.raises(UserError, match="target_lang de: parse_wsj translates en"):
        problems.create("parse_wsj", str(plain), None, "de")


def test_missing_files_are_named(plain):
    (plain / "val.trees").unlink()
    with pytest.raises(UserError, match=r"val.trees does not exist"):
        words(create(plain), "val")
    (plain / "train.trees.gz").touch()
    with pytest.raises(UserError, match=r"train.trees.gz both exist"):
        words(create(plain), "train")
    (plain / "train.trees.gz").unlink()
    with pytest.raises(UserError, match=r"holds no semi\*.trees"):
        create(plain, "parse_wsj_semi").fingerprint()
    with pytest.raises(UserError, match="split 'dev'"):
        words(create(plain), "dev")


def test_missing_section_is_named(treebank):
    for path in treebank.glob("07/*.mrg"):
        path.unlink()
    with pytest.raises(UserError, match=r"07 holds no \*.mrg file"):
        create(treebank).fingerprint()


def test_malformed_tree_is_reported_with_file_and_line(treebank):
    (treebank / "22/wsj_2201.mrg").write_text(f"{tree('fine')}( (S (NN bad)\n")
    with pytest.raises(UserError, match=r"22/wsj_2201.mrg:2: the tree that begins"):
        words(create(treebank), "val")
