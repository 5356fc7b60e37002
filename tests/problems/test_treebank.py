"""Tests of reading and cleaning files of trees."""

from __future__ import annotations

import gzip

import pytest

from t2t_repro.problems.treebank import iterate_texts, iterate_trees
from t2t_repro.system.errors import UserError

# A tree of the combined files in the treebank's README.
TREEBANK = """\

( (S
    (NP-SBJ-1 (DT the) (NN dog) )
    (VP (VBZ wants)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB bark) ))))
    (. .) ))
( (FRAG (NP=2 (NN tea) )))
"""


def read(path, text):
    path.write_text(text, encoding="utf-8")
    return list(iterate_trees(path))


def test_reads_and_cleans_the_treebanks_layout(tmp_path):
    # The trace is removed, and the noun phrase that contains only the trace.
    assert read(tmp_path / "wsj_0001.mrg", TREEBANK) == [
        (
            "the dog wants to bark .",
            "S NP DT NN /NP VP VBZ S VP TO VP VB /VP /VP /S /VP . /S",
        ),
        ("tea", "FRAG NP NN /NP /FRAG"),
    ]


def test_clean_sample_is_unchanged(shared_dir):
    path = shared_dir / "corpora/wsj_treebank_sample/dev.clean"
    words = (path.parent / "dev.sent").read_text(encoding="utf-8").splitlines()
    assert [sentence for sentence, _ in iterate_trees(path)] == words


@pytest.mark.parametrize("root", ["", "TOP", "ROOT", "S1", "VROOT"])
def test_removes_the_outermost_label(tmp_path, root):
    text = f"({root} (S (NN tea)))"
    assert read(tmp_path / "t", text) == [("tea", "S NN /S")]


def test_keeps_any_other_outermost_label(tmp_path):
    assert read(tmp_path / "t", "(S (NN tea))") == [("tea", "S NN /S")]


@pytest.mark.parametrize(
    ("label", "clean"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("ADVP|PRT", "ADVP|PRT"),
        ("-LRB-", "-LRB-"),
    ],
)
def test_removes_functional_tags_and_indices(tmp_path, label, clean):
    text = f"(TOP ({label} (NN tea)))"
    assert read(tmp_path / "t", text) == [("tea", f"{clean} NN /{clean}")]


def test_words_and_parts_of_speech_are_unchanged(tmp_path):
    text = "(TOP (NP (CD 1\\/2) (-LRB- -LRB-) (PRP$ its) (NN-X a-b=c)))"
    tags = "NP CD -LRB- PRP$ NN-X /NP"
    assert read(tmp_path / "t", text) == [("1\\/2 -LRB- its a-b=c", tags)]


def test_trees_may_share_a_line_or_span_several(tmp_path):
    path = tmp_path / "t"
    path.write_text("(TOP (NN a)) (TOP\n\n (NN b)) \r\n\n(TOP (NN c))")
    texts = list(iterate_texts(path))
    assert [number for number, _ in texts] == [1, 1, 5]
    assert [tree.split() for _, tree in texts] == [
        ["(TOP", "(NN", f"{letter}))"] for letter in "abc"
    ]


def test_reads_a_compressed_file(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"(TOP (NP (NN tea)))\n"))
    assert list(iterate_trees(path)) == [("tea", "NP NN /NP")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("(TOP (NN a))\n(TOP (NN b)", ":2: the tree that begins here does not end: 1"),
        ("(TOP (NN a))\n(TOP (NN b)))", ":2: unmatched closing bracket"),
        ("(TOP (NN a))\nnext", ":2: 'next' is outside of all brackets"),
        ("one (TOP (NN a))", ":1: 'one' is outside of all brackets"),
        ("(TOP (NN a))\n\n(TOP\n(NP a b))", ":3: not a well-formed tree"),
        ("(TOP (NP (-NONE- *)))", ":1: the tree contains only traces"),
        ("(TOP (/NP (NN a)))", ":1: the label '/NP' begins with a slash"),
        ("", " is empty"),
    ],
)
def test_malformed_tree_is_reported_with_file_and_line(tmp_path, text, fault):
    with pytest.raises(UserError) as caught:
        read(tmp_path / "bad.trees", text)
    assert f"{tmp_path}/bad.trees{fault}" in str(caught.value)
    assert "\n" not in str(caught.value)
