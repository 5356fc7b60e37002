"""Tests of the sentences and the training data that the live page names."""

import json

import pytest

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.runs.run_metadata import META_FILE
from t2t_repro.serving.exports.live_page import (
    choose_examples,
    describe_data,
    read_examples,
)

SIX = "one two three four five six"


def test_examples_have_different_lengths_and_no_repeated_word():
    repeated = "one One two three four five"
    other = "six five four three two one"
    lines = ["one", "a b c d", repeated, SIX, other, f"{SIX} 7 8 9 10 11 12"]
    long = f"{SIX} 7 8 9 10 11 12"
    assert choose_examples(lines) == [long, SIX, "a b c d", other]


def test_languages_without_spaces_have_short_examples():
    assert choose_examples(["今天天气很好", " ", "字" * 81]) == ["今天天气很好"]


@pytest.fixture
def directory(tmp_path):
    """Returns a function that creates a model directory with given metadata."""

    def create(problem, data_dir=None):
        metadata = {
            "problem": problem,
            "source_lang": "en",
            "target_lang": "de",
            "data_dir": data_dir and str(data_dir),
            "problem_fingerprint": problem and "data",
            "vocabulary_fingerprint": "vocabulary",
        }
        (tmp_path / META_FILE).write_text(json.dumps(metadata))
        return ModelDir(tmp_path)

    return create


def test_examples_are_those_of_the_test_split(directory, tmp_path):
    for split, lines in {"train": ["a b c d"] * 3, "test": [SIX, "one"]}.items():
        for language in ("en", "de"):
            path = tmp_path / f"{split}.{language}"
            path.write_text("".join(f"{line}\n" for line in lines))
    found = directory("files", tmp_path)
    assert read_examples(found) == [SIX]
    assert "en to de on train.en and train.de, 3 lines." in describe_data(found)
    (tmp_path / "test.de").unlink()
    assert read_examples(found) == []


def test_built_in_corpus_has_ten_examples(directory):
    found = directory("translate_ende_numbers")
    sentences = {source for source, _ in found.problem().pairs("test")}
    examples = read_examples(found)
    assert [len(each.split()) for each in examples] == 2 * [12, 10, 8, 6, 4]
    assert len({*examples}) == 10
    assert sentences.issuperset(examples)
    assert "50,000 lines" in describe_data(found)


@pytest.mark.parametrize("problem", ["tests.absent:Problem", "files", None])
def test_unreadable_data_give_no_examples(directory, tmp_path, problem):
    """A custom problem is code that a page must not run."""
    found = directory(problem, tmp_path / "absent")
    assert read_examples(found) == []
    assert (problem or "imported") in describe_data(found)
