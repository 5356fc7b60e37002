"""Tests of the comparison of translations in different batches."""

import json

import check_independence
import pytest

from tests import run_command, tiny

EXPECTED = [("ein Haus", -0.5), ("zwei", -0.25), ("", 0.0)]


def compared(*changes):
    translations = list(EXPECTED)
    for line, text, score in changes:
        translations[line] = (text, score)
    return check_independence.compare("way", EXPECTED, translations)


def test_equal_lines_and_scores_agree():
    assert compared() == ("way", 0.0, [], [])
    assert compared((0, "ein Haus", -0.50005)).others == []


def test_lines_with_equal_scores_are_ties():
    comparison = compared((0, "das Haus", -0.50005))
    assert (comparison.ties, comparison.others) == ([(1, -0.5, -0.50005)], [])
    assert "line 1: scores -0.500000 and -0.500050, equal within the tolerance" in (
        check_independence.describe(comparison)
    )


def test_different_scores_are_reported_for_equal_and_different_lines():
    assert compared((1, "drei", -0.3)).others == [(2, -0.25, -0.3)]
    assert compared((1, "zwei", -0.3)).others == [(2, -0.25, -0.3)]


@pytest.mark.medium
def test_a_model_translates_equally_in_all_batches(trained, tmp_path):
    text = tmp_path / "text.en"
    lines = [source for source, _ in tiny.pairs("train")][:12]
    text.write_text("".join(f"{line}\n" for line in lines))
    process = run_command.run_alone(
        "tools/check_independence.py",
        *("--model_dir", str(trained.model_dir), "--input_file", str(text)),
        *("--batch_sizes", "1,5", "--json"),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert (result["lines"], result["passed"]) == (12, True)
    assert len(result["ways"]) == 4
