"""Tests of the augmentation of treebanks."""

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
    result = run_command.run(TOOL, "--data_dir", str(folder), *flags, "--json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["trees"] == len(read_lines(folder / "semi.trees"))
    return read_lines(folder / "semi.trees")


def test_exchanges_constituents_with_equal_label_and_parent(tmp_path):
    trees = set(recombine(tmp_path, "--trees", "200", "--probability", "0.5"))
    # Two subjects, two predicates, with or without a full stop: eight sentences. The
    # object has another parent label, so it does not become a subject.
    expected = {
        f"{subject} {verb}{stop}"
        for subject in ("the dog", "it")
        for verb in ("barks", "sees a cat")
        for stop in (" .", "")
    }
    assert {" ".join(read_tree(tree)[1]) for tree in trees} == expected
