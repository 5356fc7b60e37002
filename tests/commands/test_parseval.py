"""Tests of the command `parseval`."""

from __future__ import annotations

import json

import pytest

from tests import run_command

GOLD = "(TOP (S (NP (NN tea)) (VP (VBZ is) (ADJP (JJ hot)))))"
# One of four brackets has another label.
NEAR = GOLD.replace("ADJP", "NP")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(f"{GOLD}\n" * 3)
    (tmp_path / "test").write_text(f"{GOLD}\n{NEAR}\n\n")
    return "--gold", str(tmp_path / "gold"), "--test", str(tmp_path / "test")


def test_prints_the_figures(files):
    result = run_command.run("parseval", *files)
    assert (result.status, result.err) == (0, "")
    first, second, third, fourth = result.out.splitlines()
    assert first == (
        "F1 87.50  recall 87.50  precision 87.50  complete match 50.00  tagging 100.00"
    )
    # Recall is 7 of 12 brackets, precision 7 of 8.
    assert second.startswith("F1 70.00  recall 58.33  precision 87.50")
    assert second.endswith("(failed sentences counted as 0)")
    assert third.endswith("(at most 40 words, 2 sentences)")
    assert fourth == "3 sentences: 2 valid, 0 errors, 1 skipped"


def test_json_contains_figures_and_counts(files):
    values = json.loads(run_command.run("parseval", *files, "--json").out)
    assert (values["recall"], values["precision"], values["f1"]) == (87.5, 87.5, 87.5)
    assert (values["complete_match"], values["tagging"]) == (50, 100)
    assert (values["sentences"], values["valid"], values["skipped"]) == (3, 2, 1)
    assert (values["matched"], values["gold_brackets"]) == (7, 8)
    assert values["failures_as_zero"]["f1"] == pytest.approx(70)
    assert values["length_40"]["valid"] == 2


def test_reads_a_parameter_file(files, tmp_path):
    path = tmp_path / "my.prm"
    path.write_text("EQ_LABEL ADJP NP\nCUTOFF_LEN 2\n")
    result = run_command.run("parseval", *files, "--param_file", str(path), "--json")
    values = json.loads(result.out)
    # With these parameters TOP is counted, and ADJP equals NP.
    assert (values["matched"], values["gold_brackets"], values["f1"]) == (10, 10, 100)
    assert values["length_2"]["sentences"] == 0
