"""Recombined trees: whole, of the treebank's own constituents, the same every time."""

from __future__ import annotations

import json

from t2t_repro.problems.trees import read_tree
from t2t_repro.system.atomic_file import read_lines
from tests import run_command

TOOL = "tools/recombine_trees.py"
TRAIN = """\
(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))
(TOP (S (NP (PRP it)) (VP (VBZ sees) (NP (DT a) (NN cat)))))
"""


def recombine(folder, *flags):
    (folder / "train.trees").write_text(TRAIN)
    done = run_command.run(TOOL, "--data_dir", str(folder), *flags, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["trees"] == len(read_lines(folder / "semi.trees"))
    return read_lines(folder / "semi.trees")


def test_constituents_of_one_label_under_one_label_take_turns(tmp_path):
    found = set(recombine(tmp_path, "--trees", "200", "--probability", "0.5"))
    # Two subjects, two predicates, and a full stop or none: eight sentences. The object
    # stands under another label than the subjects, so it is not among them.
    expected = {
        f"{subject} {verb}{stop}"
        for subject in ("the dog", "it")
        for verb in ("barks", "sees a cat")
        for stop in (" .", "")
    }
    assert {" ".join(read_tree(tree)[1]) for tree in found} == expected


def test_nothing_is_replaced_without_a_chance(tmp_path):
    found = recombine(tmp_path, "--trees", "20", "--probability", "1e-9")
    assert {f"{tree}\n" for tree in found} == set(TRAIN.splitlines(keepends=True))


def test_the_seed_decides_what_is_drawn(tmp_path):
    flags = ("--trees", "30", "--seed")
    first = recombine(tmp_path, *flags, "5")
    assert recombine(tmp_path, *flags, "5") == first
    assert recombine(tmp_path, *flags, "6") != first


def test_trees_are_not_longer_than_asked_for(tmp_path):
    found = recombine(tmp_path, "--trees", "50", "--most_words", "3")
    assert all(len(read_tree(tree)[1]) <= 3 for tree in found)
