"""What counts as the same translation."""

import json

import check_independence
import pytest

from tests import run_command, tiny

EXPECTED = [("ein Haus", -0.5), ("zwei", -0.25), ("", 0.0)]


def compared(*changes):
    found = list(EXPECTED)
    for place, text, score in changes:
        found[place] = (text, score)
    return check_independence.compare("way", EXPECTED, found)


def test_the_same_lines_and_scores_agree():
    assert compared() == ("way", 0.0, [], [])
    assert compared((0, "ein Haus", -0.50005)).others == []


def test_lines_may_differ_where_scores_are_as_good_as_equal():
    found = compared((0, "das Haus", -0.50005))
    assert (found.ties, found.others) == ([(1, -0.5, -0.50005)], [])
    assert "line 1: scores -0.500000 and -0.500050, scores as good as equal" in (
        check_independence.describe(found)
    )


def test_other_scores_are_found_whether_or_not_the_line_differs():
    assert compared((1, "drei", -0.3)).others == [(2, -0.25, -0.3)]
    assert compared((1, "zwei", -0.3)).others == [(2, -0.25, -0.3)]


@pytest.mark.medium
def test_a_model_translates_alike_in_all_ways(trained, tmp_path):
    text = tmp_path / "text.en"
    lines = [source for source, _ in tiny.pairs("train")][:12]
    text.write_text("".join(f"{line}\n" for line in lines))
    done = run_command.run_alone(
        "tools/check_independence.py",
        *("--model_dir", str(trained.model_dir), "--input_file", str(text)),
        *("--batch_sizes", "1,5", "--json"),
    )
    assert done.status == 0, done.err
    result = json.loads(done.out)
    assert (result["lines"], result["passed"]) == (12, True)
    assert len(result["ways"]) == 4
