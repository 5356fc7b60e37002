"""Tests of custom problem classes and their error messages."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from t2t_repro import problems
from t2t_repro.system.errors import UserError

GOOD = """\
from t2t_repro.problems import Problem


class Reverse(Problem):
    source_lang, target_lang = "en", "ne"

    def pairs(self, split):
        for word in {"train": ["ab", "cd"], "val": ["ef"], "test": ["gh"]}[split]:
            yield word, word[::-1]
"""
NUMBER = itertools.count()


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Returns a function that writes an importable module with a unique name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write_module(text: str) -> str:
        name = f"own_{next(NUMBER)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return write_module


def test_languages_and_pairs_suffice(write):
    name = f"{write(GOOD)}:Reverse"
    problem = problems.create(name, "some/folder")
    assert (problem.name, problem.data_dir) == (name, "some/folder")
    assert (problem.source_lang, problem.target_lang) == ("en", "ne")
    assert list(problem.pairs("train")) == [("ab", "ba"), ("cd", "dc")]
    assert problem.description("test") == f"{name}, test"
    text = b"en ne" + b"ab\nba\n" + b"cd\ndc\n"
    assert problem.fingerprint() == hashlib.sha256(text).hexdigest()


def test_class_gets_data_dir_and_may_override_methods(write):
    text = GOOD + (
        "    def description(self, split):\n"
        "        return f'{self.data_dir}/{split} of {self.name}'\n"
        "    def fingerprint(self):\n"
        "        return 'reverse, version 2'\n"
    )
    name = f"{write(text)}:Reverse"
    problem = problems.create(name, "here")
    assert problem.description("val") == f"here/val of {name}"
    assert problem.fingerprint() == "reverse, version 2"


def test_finds_a_module_in_a_package(tmp_path, write):
    module = write(GOOD)
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "__init__.py").touch()
    (tmp_path / f"{module}.py").rename(tmp_path / "corpora" / "mine.py")
    problem = problems.create("corpora.mine:Reverse")
    assert list(problem.pairs("val")) == [("ef", "fe")]


def test_rejects_other_languages(write):
    with pytest.raises(UserError, match=r"target_lang de: own_.* en to ne"):
        problems.create(f"{write(GOOD)}:Reverse", None, "en", "de")


def error_message(name: str, split: str = "train") -> str:
    """Returns the error message, without prefix, of creating and reading a problem."""
    with pytest.raises(UserError) as caught:
        problem = problems.create(name)
        list(problem.pairs(split))
        problem.description(split)
        problem.fingerprint()
    message = str(caught.value)
    assert message.startswith(f"problem {name}: ")
    assert "\n" not in message
    return message.removeprefix(f"problem {name}: ")


@pytest.mark.parametrize("name", ["mine:", ":Mine", "a:b:c", "my corpus:Mine", "a.:B"])
def test_malformed_name_is_reported_with_an_example(name):
    assert "such as my_corpus:MyCorpus" in error_message(name)


@pytest.mark.parametrize("name", ["absent_module:Mine", "json.absent:Mine"])
def test_missing_module_is_reported_with_the_remedy(name):
    module = name.partition(":")[0]
    assert error_message(name) == (
        f"cannot find the module {module}; run the command in the folder that "
        "contains it, or add that folder to PYTHONPATH"
    )


def test_missing_class_is_reported_with_the_existing_ones(write):
    module = write(GOOD)
    fault = "has no subclass of t2t_repro.problems.Problem of this name;"
    expected = f"{module} {fault} its subclasses are: Reverse"
    assert error_message(f"{module}:Revers") == expected
    assert error_message(f"{module}:Problem") == expected
    expected = f"json {fault} its subclasses are: none"
    assert error_message("json:JSONDecoder") == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def pairs", "def pears", "the class lacks the method pairs"),
        ('"en", "ne"', '"en", None', "its target_lang is None; give it a language"),
        ('"en", "ne"', '"../en", "ne"', "its source_lang is '../en'; give it a lang"),
        ("from t2t", "import absent\nfrom t2t", "No module named 'absent' ({file}:1)"),
        ("from t2t", "import sys; sys.exit(3)\nfrom t2t", "failed: SystemExit: 3 ("),
        ("class Rev", "clas Rev", "failed: SyntaxError: invalid syntax ("),
        ("    source", "    1 / 0\n    source", "failed: ZeroDivisionError: div"),
        ("[split]", "['tr']", "failed: KeyError: 'tr' ({file}:8)"),
        (
            "    def",
            "    name = property(str)\n    def",
            "Reverse(data_dir) failed: Attri",
        ),
        ("yield word, word[::-1]", "yield word", "pair 1 of pairs(\"train\") is 'ab'"),
        ("word[::-1]", "len(word)", "is ('ab', 2); it must be a source and a target"),
        ("yield word, word[::-1]", "pass", "'NoneType' object is not iterable"),
        ("    def", "    fingerprint = lambda s: 7\n    def", "its fingerprint is 7;"),
        ("    def", "    description = lambda s, t: ''\n    def", "description is ''"),
    ],
)
def test_failing_class_is_reported_in_one_line(tmp_path, write, old, new, message):
    module = write(GOOD.replace(old, new, 1))
    file = tmp_path / f"{module}.py"
    assert message.format(file=file) in error_message(f"{module}:Reverse")


def test_user_error_of_the_class_is_unchanged(write):
    text = GOOD.replace(
        "        for", "        raise UserError('no more words')\n        for"
    )
    name = write("from t2t_repro.system.errors import UserError\n" + text)
    with pytest.raises(UserError, match=r"^no more words$"):
        list(problems.create(f"{name}:Reverse").pairs("train"))
