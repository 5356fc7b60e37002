"""The baseline that a parser has to beat, by hand."""

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


def test_each_word_begins_a_constituent_to_the_end(tmp_path):
    write(tmp_path)
    output = tmp_path / "baseline"
    done = run_command.run(
        TOOL, "--data_dir", str(tmp_path), "--output_file", str(output), "--json"
    )
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    # DT begins three noun phrases and two sentences; VBZ a verb phrase of two words.
    assert found["labels"] == {"DT": "NP", "VBZ": "VP"}
    # JJ was not seen, so it is NP; the full stop stays outside.
    assert output.read_text() == (
        "(TOP (S (PRP it) (VP (VBZ sees) (NP (DT the) (NP (JJ big) (NN dog))))"
        " (. .)))\n"
    )
    # S, VP and NP are right, the noun phrase "big dog" is not, "it" is missing.
    assert (found["matched"], found["gold_brackets"], found["test_brackets"]) == (
        3,
        4,
        4,
    )
    assert (found["f1"], found["tagging"]) == (75, 100)


def test_the_figures_are_printed_for_people(tmp_path):
    write(tmp_path)
    done = run_command.run(TOOL, "--data_dir", str(tmp_path), "--split", "val")
    assert done.out.startswith("F1 ")
    assert done.out.endswith("2 sentences: 2 valid, 0 errors, 0 skipped\n")
