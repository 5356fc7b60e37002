"""Tests of the right-branching baseline."""

from __future__ import annotations

import json

from tests import run_command

TOOL = "tools/right_branching.py"
TRAIN = """\
(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))) (. .)))
(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps))))
"""
TEST = "(TOP (S (NP (PRP it)) (VP (VBZ sees) (NP (DT the) (JJ big) (NN dog))) (. .)))\n"


def write(folder):
    for split, text in (("train", TRAIN), ("val", TRAIN), ("test", TEST)):
        (folder / f"{split}.trees").write_text(text)


def test_each_word_begins_a_constituent_up_to_the_end(tmp_path):
    write(tmp_path)
    output = tmp_path / "baseline"
    process = run_command.run(
        TOOL, "--data_dir", str(tmp_path), "--output_file", str(output), "--json"
    )
    assert (process.status, process.err) == (0, "")
    result = json.loads(process.out)
    # DT begins three noun phrases and two sentences; VBZ begins a verb phrase.
    assert result["labels"] == {"DT": "NP", "VBZ": "VP"}
    # JJ is not in the training trees, so its label is NP. The full stop is attached to
    # S, outside of the nested brackets.
    assert output.read_text() == (
        "(TOP (S (PRP it) (VP (VBZ sees) (NP (DT the) (NP (JJ big) (NN dog))))"
        " (. .)))\n"
    )
    # S, VP and NP match. The noun phrase "big dog" is wrong, that of "it" is missing.
    assert (result["matched"], result["gold_brackets"], result["test_brackets"]) == (
        3,
        4,
        4,
    )
    assert (result["f1"], result["tagging"]) == (75, 100)
