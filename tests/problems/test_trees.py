"""Tests of the conversion of trees to tags and back."""

from __future__ import annotations

import json

import pytest
from golden_checks.texts import words_and_tags

from t2t_repro.problems.trees import build_tree
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.errors import UserError


def test_words_and_tags_equal_those_of_tensor2tensor(shared_dir):
    path = shared_dir / "t2t/golden/packing_and_trees.json"
    cases = json.loads(path.read_text("utf-8"))["trees"]
    assert len(cases) == 3
    for case in cases:
        assert words_and_tags(case["tree"]) == (case["words"], case["tags"])
        assert build_tree(case["words"], case["tags"]) == case["tree"]


@pytest.mark.parametrize(("split", "count"), [("train", 3396), ("dev", 273)])
def test_round_trip_of_the_treebanks_trees(shared_dir, split, count):
    path = shared_dir / "corpora/wsj_treebank_sample"
    pairs = list(iterate_pairs(path / f"{split}.clean", path / f"{split}.sent"))
    assert len(pairs) == count
    for tree, sentence in pairs:
        words, tags = words_and_tags(tree)
        assert words == sentence
        assert build_tree(words, tags) == tree


def test_ignores_white_space_and_the_outermost_label():
    # This is the layout of the treebank's files.
    tree = "( (S \n    (NP (DT the)(NN cat) )\n    (VP (VBZ sits) )\n    (. .) ))\n"
    words, tags = words_and_tags(tree)
    assert (words, tags) == ("the cat sits .", "S NP DT NN /NP VP VBZ /VP . /S")
    assert build_tree(words, tags) == (
        "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits)) (. .)))"
    )


def test_tree_may_have_several_top_constituents():
    tree = "(TOP (NP (NN tea)) (: ;) (NP (NP (NN cake))))"
    assert words_and_tags(tree) == ("tea ; cake", "NP NN /NP : NP NP NN /NP /NP")
    assert build_tree(*words_and_tags(tree)) == tree


def test_nested_equal_labels_are_matched_from_the_innermost():
    tree = "(TOP (S (S (S (X (X a))) (CC or) (S (VB go)))))"
    assert build_tree(*words_and_tags(tree)) == tree


def test_tree_may_be_deeper_than_the_python_stack():
    tree = "(TOP" + " (NP" * 3000 + " (NN x)" + ")" * 3001
    assert build_tree(*words_and_tags(tree)) == tree


@pytest.mark.parametrize(
    ("tree", "fault"),
    [
        ("(TOP (S (NN a))", r"the closing brackets of \(TOP are missing"),
        ("(TOP (S (NP (NN a)", r"brackets of \(TOP, \(S, \(NP are missing"),
        ("(TOP (S (NN a", r"the word 'a' has no part of speech"),
        ("(TOP (NN a)))", r"'\)' follows the last closing bracket .*character 13"),
        ("(TOP (NN a)) (TOP (NN b))", r"'\(TOP' follows the last closing"),
        (")", r"unmatched closing bracket \(character 1\)"),
        ("(TOP (NP two words))", r"the word 'two' has no part of speech"),
        ("(TOP (NN a) b)", r"the word 'b' has no part of speech .*character 13"),
        ("(TOP (NP (NN)))", r"\(NN\) is empty"),
        ("()", r"\(\) is empty"),
        ("(TOP ((NN a)))", r"an opening bracket has no label \(character 6"),
        ("(NN a)", r"'\(NN a\)' is not in a constituent"),
        ("words", r"the word 'words' has no part of speech"),
        ("  ", "it is empty"),
    ],
)
def test_malformed_tree_is_reported_in_one_line(tree, fault):
    with pytest.raises(UserError, match=fault) as caught:
        words_and_tags(tree)
    assert "\n" not in str(caught.value)


def test_message_is_limited_to_the_beginning_of_a_long_tree():
    with pytest.raises(UserError, match=r"\(TOP \(NP \(NN a\).* \.\.\.'") as caught:
        words_and_tags("(TOP (NP" + " (NN a)" * 100)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("words", "tags", "fault"),
    [
        ("a", "S NN /NP /S", r"/NP \(tag 3\) has no beginning"),
        ("a", "S NP NN /S /NP", r"/NP \(tag 5\) has no beginning"),
        ("a", "NN S /S", r"/S \(tag 3\) has no beginning or is empty"),
        ("a", "S NP NN /S", "1 words, but 2 parts of speech or unclosed constituents"),
        ("a b", "S NN /S", "2 words, but 1 parts of speech"),
        ("", "", "0 words, but 0 parts"),
        ("(", "S NN /S", "write -LRB- and -RRB- for brackets"),
        ("a", "S N)N /S", r"'N\)N' contains a bracket"),
    ],
)
def test_rejects_words_and_tags_that_do_not_fit(words, tags, fault):
    with pytest.raises(UserError, match=fault):
        build_tree(words, tags)
