"""The command `parseval`: EVALB's figures of two files of trees."""

from __future__ import annotations

import json

import pytest

from tests import run_command

GOLD = "(TOP (S (NP (NN tea)) (VP (VBZ is) (ADJP (JJ hot)))))"
# One of four brackets is another.
NEAR = GOLD.replace("ADJP", "NP")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(f"{GOLD}\n" * 3)
    (tmp_path / "test").write_text(f"{GOLD}\n{NEAR}\n\n")
    return "--gold", str(tmp_path / "gold"), "--test", str(tmp_path / "test")


def test_the_figures_are_printed_for_people(files):
    done = run_command.run("parseval", *files)
    assert (done.status, done.err) == (0, "")
    first, second, third, fourth = done.out.splitlines()
    assert first == (
        "F1 87.50  recall 87.50  precision 87.50  complete match 50.00  tagging 100.00"
    )
    # 7 of 12 and of 8 brackets.
    assert second.startswith("F1 70.00  recall 58.33  precision 87.50")
    assert second.endswith("(failed sentences counted as 0)")
    assert third.endswith("(at most 40 words, 2 sentences)")
    assert fourth == "3 sentences: 2 valid, 0 errors, 1 skipped"


def test_json_holds_figures_and_counts(files):
    found = json.loads(run_command.run("parseval", *files, "--json").out)
    assert (found["recall"], found["precision"], found["f1"]) == (87.5, 87.5, 87.5)
    assert (found["complete_match"], found["tagging"]) == (50, 100)
    assert (found["sentences"], found["valid"], found["skipped"]) == (3, 2, 1)
    assert (found["matched"], found["gold_brackets"]) == (7, 8)
    assert found["failures_as_zero"]["f1"] == pytest.approx(70)
    assert found["length_40"]["valid"] == 2


def test_other_parameters_can_be_given(files, tmp_path):
    path = tmp_path / "my.prm"
    path.write_text("EQ_LABEL ADJP NP\nCUTOFF_LEN 2\n")
    done = run_command.run("parseval", *files, "--param_file", str(path), "--json")
    found = json.loads(done.out)
    # TOP is counted now, and the two labels are the same.
    assert (found["matched"], found["gold_brackets"], found["f1"]) == (10, 10, 100)
    assert found["length_2"]["sentences"] == 0
