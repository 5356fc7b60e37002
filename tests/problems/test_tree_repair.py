"""Tests of the repair of parsing models' output."""

from __future__ import annotations

import re

import pytest
from golden_checks.texts import words_and_tags
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.evaluation.parseval import parseval
from t2t_repro.problems.tree_repair import Repair, escape_brackets, repair
from t2t_repro.problems.trees import build_tree, read_tree
from tests import properties

WORDS = st.one_of(
    st.sampled_from(["the", "dog", "barks", ".", ",", "``", "''", "'", "--", "?"]),
    st.text(min_size=1, max_size=8).filter(
        lambda text: text.split() == [text] and not re.search("[()]", text)
    ),
)
TAGS = st.one_of(
    st.sampled_from(
        [
            *("S", "NP", "VP", "X|Y", "DT", "NN", "VBZ", ".", ",", ":", "''", "TOP"),
            *("/S", "/NP", "/VP", "/X|Y", "/NN", "/", "//", "(", ")", "(NP", "()"),
        ]
    ),
    st.text(min_size=1, max_size=4).filter(lambda text: text.split() == [text]),
)


def repaired(words, tags):
    return repair(words.split(), tags.split())


def test_tree_is_unchanged():
    tags = "S NP DT NN /NP VP VBZ /VP . /S"
    tree = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"
    assert repaired("the dog barks .", tags) == Repair(tree, False, False)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_trees_of_the_treebank_are_unchanged(shared_dir, split):
    path = shared_dir / f"corpora/wsj_treebank_sample/{split}.clean"
    changed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words, tags = words_and_tags(line)
        result = repaired(words, tags)
        if result.needed or result.tree != line:
            changed.append(line)
    # In one tree of the training data a word is tagged as a comma.
    assert len(changed) == (1 if split == "train" else 0)
    assert all("(, Wa)" in line for line in changed)


@pytest.mark.parametrize(
    ("words", "tags", "tree"),
    [
        # End tags are missing, as in a truncated output.
        ("the dog", "S NP DT NN", "(S (NP (DT the) (NN dog)))"),
        # An end tag closes the open constituents inside.
        ("a dog", "S NP DT VP NN /S", "(S (NP (DT a) (VP (NN dog))))"),
        # An end tag is unmatched.
        ("the dog", "S /VP NP DT NN /NP /S", "(S (NP (DT the) (NN dog)))"),
        # Constituents are empty.
        ("dog", "S NP /NP NN VP /VP /S", "(S (NN dog))"),
        # The output contains brackets.
        ("dog", "S (NN NN ) /S", "(S (NN dog))"),
        # A label that is not in the treebank is balanced.
        ("the dog", "S Q DT /Q Q NN /Q /NP /S", "(S (Q (DT the)) (Q (NN dog)))"),
    ],
)  # fmt: skip
def test_balances_constituents(words, tags, tree):
    assert repaired(words, tags) == Repair(f"(TOP {tree})", True, False)


@pytest.mark.parametrize(
    ("words", "tags", "tree"),
    [
        # A part of speech is missing: the last word is placed after the previous one.
        ("a big dog", "S NP DT JJ /NP /S", "(S (NP (DT a) (JJ big) (NN dog)))"),
        # A part of speech is surplus; its constituent becomes empty.
        ("a dog", "S NP DT NN /NP VP VBZ /VP /S", "(S (NP (DT a) (NN dog)))"),
        # The full stop anchors the alignment.
        (
            "a dog barks .",
            "S NP DT /NP VP VBZ /VP . /S",
            "(S (NP (DT a)) (VP (VBZ dog) (NN barks)) (. .))",
        ),
        # The first word is unaligned.
        ("tea .", "S . /S", "(S (NN tea) (. .))"),
        # Only parts of speech that do not fit punctuation are changed.
        ("a dog", "S DT , /S", "(S (DT a) (NN dog))"),
        ("a , dog", "S DT NN NN /S", "(S (DT a) (, ,) (NN dog))"),
        # The output is empty or contains only unusable tags.
        ("a dog .", "", "(S (NN a) (NN dog) (. .))"),
        ("a dog", ". .", "(NN a) (NN dog)"),
    ],
)
def test_every_word_gets_a_part_of_speech(words, tags, tree):
    result = repaired(words, tags)
    assert result.tree == f"(TOP {tree})"
    assert result.tags


def test_apostrophe_may_be_a_quote_or_a_possessive():
    for tag in ("''", "POS"):
        assert not repaired("dogs '", f"NP NNS {tag} /NP").needed


def test_brackets_in_words_are_escaped():
    assert escape_brackets("f(x)") == "f-LRB-x-RRB-"


@pytest.mark.parametrize("words", [[], [""], ["two words"], ["(x)"]])
def test_rejects_malformed_words(words):
    with pytest.raises(ValueError, match="words must be a non-empty list"):
        repair(words, ["NN"])


@properties.checked
@given(st.lists(WORDS, min_size=1, max_size=12), st.lists(TAGS, max_size=30))
def test_any_output_becomes_a_tree_over_exactly_the_words(words, tags):
    result = repair(words, tags)
    assert read_tree(result.tree)[1] == words
    assert result.tree.startswith("(TOP (")
    assert "\n" not in result.tree
    # EVALB can score the tree.
    report = parseval([result.tree], [result.tree])
    assert report.all.errors == 0


@properties.checked
@given(st.recursive(
    st.sampled_from(["DT", "NN", "VBZ"]),
    lambda inner: st.tuples(
        st.sampled_from(["S", "NP", "VP"]), st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=20,
))  # fmt: skip
def test_tree_of_any_shape_is_unchanged(node):
    def tags(node):
        if isinstance(node, str):
            return [node]
        label, inner = node
        return [label, *(tag for each in inner for tag in tags(each)), f"/{label}"]

    tree_tags = tags(node)
    words = ["w"] * sum(tag in ("DT", "NN", "VBZ") for tag in tree_tags)
    expected = build_tree(" ".join(words), " ".join(tree_tags))
    assert repair(words, tree_tags) == Repair(expected, False, False)


def test_repairs_long_text_in_bounded_time():
    result = repair(["w"] * 5000, ["NN"] * 3000 + ["/S"])
    assert read_tree(result.tree)[1] == ["w"] * 5000
