"""Tests of named validation sets (`train --validation`)."""

import pytest

from t2t_repro import problems
from t2t_repro.system.errors import UserError
from t2t_repro.training.validation_sets import log_scores, parse_sets
from tests import tiny


@pytest.fixture
def problem(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    return problems.create("files", str(tmp_path / "data"), "en", "de")


def test_sets_have_the_names_and_texts_that_are_given(problem, tmp_path):
    other = tiny.write_corpus(tmp_path / "other")
    (other / "val.en").write_text("one\n")
    (other / "val.de").write_text("eins\n")
    text = f"same={tmp_path / 'data'}, my-set_2={other}"
    sets = parse_sets(text, problem, None)
    assert list(sets) == ["same", "my-set_2"]
    assert list(sets["same"].pairs("val")) == list(problem.pairs("val"))
    assert list(sets["my-set_2"].pairs("val")) == [("one", "eins")]
    assert parse_sets(None, problem, None) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DATA", "must be NAME=FOLDER"),
        ("=DATA", "must be NAME=FOLDER"),
        ("news=", "must be NAME=FOLDER"),
        ("my news=DATA", "must be NAME=FOLDER"),
        ("news=DATA,", "'' must be NAME=FOLDER"),
        ("val=DATA", "name val is given twice or is that of another set"),
        ("guard=DATA", "name guard is given twice or is that of another set"),
        ("news=DATA,news=DATA", "name news is given twice"),
    ],
)
def test_rejects_malformed_names_and_sets(problem, tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        parse_sets(text.replace("DATA", str(tmp_path / "data")), problem, None)


def test_rejects_an_empty_set(problem, tmp_path):
    other = tiny.write_corpus(tmp_path / "other")
    for name in ("val.en", "val.de"):
        (other / name).write_text("")
    with pytest.raises(UserError, match="empty"):
        parse_sets(f"news={other}", problem, None)


def test_scores_of_a_repeated_step_are_replaced(tmp_path):
    log_scores(tmp_path, 10, {"a": 1.0, "b": 2.0})
    log_scores(tmp_path, 20, {"a": 3.0})
    log_scores(tmp_path, 20, {"a": 4.0})
    rows = (tmp_path / "validation_sets.tsv").read_text().splitlines()
    assert rows == [
        "step\tset\tscore",
        "10\ta\t1.000000",
        "10\tb\t2.000000",
        "20\ta\t4.000000",
    ]
