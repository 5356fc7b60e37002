"""Any output becomes a tree over the words; a tree stays as it is."""

from __future__ import annotations

import re

import pytest
from golden_checks.texts import words_and_tags
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.evaluation.parseval import parseval
from t2t_repro.problems.tree_repair import Repair, escaped, repair
from t2t_repro.problems.trees import read_tree, tree_of
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


def test_a_tree_stays_as_it_is():
    tags = "S NP DT NN /NP VP VBZ /VP . /S"
    tree = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"
    assert repaired("the dog barks .", tags) == Repair(tree, False, False)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_the_treebanks_trees_stay_as_they_are(shared_dir, split):
    path = shared_dir / f"corpora/wsj_treebank_sample/{split}.clean"
    changed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words, tags = words_and_tags(line)
        found = repaired(words, tags)
        if found.needed or found.tree != line:
            changed.append(line)
    # In one tree of the training data a word is tagged as a comma.
    assert len(changed) == (1 if split == "train" else 0)
    assert all("(, Wa)" in line for line in changed)


@pytest.mark.parametrize(
    ("words", "tags", "tree"),
    [
        # Ends are missing, as in an output that was cut.
        ("the dog", "S NP DT NN", "(S (NP (DT the) (NN dog)))"),
        # An end closes what was left open inside.
        ("a dog", "S NP DT VP NN /S", "(S (NP (DT a) (VP (NN dog))))"),
        # An end of nothing.
        ("the dog", "S /VP NP DT NN /NP /S", "(S (NP (DT the) (NN dog)))"),
        # Nothing inside.
        ("dog", "S NP /NP NN VP /VP /S", "(S (NN dog))"),
        # Brackets in the output.
        ("dog", "S (NN NN ) /S", "(S (NN dog))"),
        # A label that is none of the treebank's and ends as often as it begins.
        ("the dog", "S Q DT /Q Q NN /Q /NP /S", "(S (Q (DT the)) (Q (NN dog)))"),
    ],
)  # fmt: skip
def test_constituents_are_balanced(words, tags, tree):
    assert repaired(words, tags) == Repair(f"(TOP {tree})", True, False)


@pytest.mark.parametrize(
    ("words", "tags", "tree"),
    [
        # One too few: the last word stands behind the one before it.
        ("a big dog", "S NP DT JJ /NP /S", "(S (NP (DT a) (JJ big) (NN dog)))"),
        # One too many, and nothing is left of the constituent around it.
        ("a dog", "S NP DT NN /NP VP VBZ /VP /S", "(S (NP (DT a) (NN dog)))"),
        # The full stop is where the alignment holds on to.
        (
            "a dog barks .",
            "S NP DT /NP VP VBZ /VP . /S",
            "(S (NP (DT a)) (VP (VBZ dog) (NN barks)) (. .))",
        ),
        # A word before all that is known.
        ("tea .", "S . /S", "(S (NN tea) (. .))"),
        # Only a part of speech that is punctuation's is changed.
        ("a dog", "S DT , /S", "(S (DT a) (NN dog))"),
        ("a , dog", "S DT NN NN /S", "(S (DT a) (, ,) (NN dog))"),
        # Nothing at all.
        ("a dog .", "", "(S (NN a) (NN dog) (. .))"),
        ("a dog", ". .", "(NN a) (NN dog)"),
    ],
)
def test_every_word_gets_a_part_of_speech(words, tags, tree):
    found = repaired(words, tags)
    assert found.tree == f"(TOP {tree})"
    assert found.tags


def test_an_apostrophe_may_be_a_quote_or_a_possessive():
    for tag in ("''", "POS"):
        assert not repaired("dogs '", f"NP NNS {tag} /NP").needed


def test_brackets_are_written_as_the_treebank_does():
    assert escaped("f(x)") == "f-LRB-x-RRB-"


@pytest.mark.parametrize("words", [[], [""], ["two words"], ["(x)"]])
def test_what_are_no_words_is_a_fault_of_the_program(words):
    with pytest.raises(ValueError, match="no words of a sentence"):
        repair(words, ["NN"])


@properties.checked
@given(st.lists(WORDS, min_size=1, max_size=12), st.lists(TAGS, max_size=30))
def test_any_output_becomes_a_tree_over_exactly_the_words(words, tags):
    found = repair(words, tags)
    assert read_tree(found.tree)[1] == words
    assert found.tree.startswith("(TOP (")
    assert "\n" not in found.tree
    # EVALB reads it, and against itself nothing is missing.
    report = parseval([found.tree], [found.tree])
    assert report.all.errors == 0


@properties.checked
@given(st.recursive(
    st.sampled_from(["DT", "NN", "VBZ"]),
    lambda inner: st.tuples(
        st.sampled_from(["S", "NP", "VP"]), st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=20,
))  # fmt: skip
def test_a_tree_of_any_shape_stays_as_it_is(node):
    def tags(node):
        if isinstance(node, str):
            return [node]
        label, inner = node
        return [label, *(tag for each in inner for tag in tags(each)), f"/{label}"]

    found = tags(node)
    words = ["w"] * sum(tag in ("DT", "NN", "VBZ") for tag in found)
    expected = tree_of(" ".join(words), " ".join(found))
    assert repair(words, found) == Repair(expected, False, False)


def test_a_text_of_any_length_is_repaired_in_bounded_time():
    found = repair(["w"] * 5000, ["NN"] * 3000 + ["/S"])
    assert read_tree(found.tree)[1] == ["w"] * 5000
