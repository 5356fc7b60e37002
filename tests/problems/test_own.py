"""A class of one's own is a problem, and each of its mistakes is one line."""

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
    """Writes a module where Python looks, and returns its name, which is new."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(text: str) -> str:
        name = f"own_{next(NUMBER)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return written


def test_two_languages_and_pairs_are_a_problem(write):
    name = f"{write(GOOD)}:Reverse"
    problem = problems.create(name, "some/folder")
    assert (problem.name, problem.data_dir) == (name, "some/folder")
    assert (problem.source_lang, problem.target_lang) == ("en", "ne")
    assert list(problem.pairs("train")) == [("ab", "ba"), ("cd", "dc")]
    assert problem.description("test") == f"{name}, test"
    text = b"en ne" + b"ab\nba\n" + b"cd\ndc\n"
    assert problem.fingerprint() == hashlib.sha256(text).hexdigest()


def test_the_class_is_given_the_data_directory_and_may_say_more(write):
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


def test_a_module_in_a_package_is_found(tmp_path, write):
    module = write(GOOD)
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "__init__.py").touch()
    (tmp_path / f"{module}.py").rename(tmp_path / "corpora" / "mine.py")
    problem = problems.create("corpora.mine:Reverse")
    assert list(problem.pairs("val")) == [("ef", "fe")]


def test_other_languages_than_its_own_are_refused(write):
    with pytest.raises(UserError, match=r"--target_lang de: own_.* en to ne"):
        problems.create(f"{write(GOOD)}:Reverse", None, "en", "de")


def refusal(name: str, split: str = "train") -> str:
    """Returns why a problem is refused, when it is made or when it is read."""
    with pytest.raises(UserError) as refused:
        problem = problems.create(name)
        list(problem.pairs(split))
        problem.description(split)
        problem.fingerprint()
    told = str(refused.value)
    assert told.startswith(f"problem {name}: ")
    assert "\n" not in told
    return told.removeprefix(f"problem {name}: ")


@pytest.mark.parametrize("name", ["mine:", ":Mine", "a:b:c", "my corpus:Mine", "a.:B"])
def test_a_name_that_is_none_is_refused_with_an_example(name):
    assert "such as my_corpus:MyCorpus" in refusal(name)


@pytest.mark.parametrize("name", ["absent_module:Mine", "json.absent:Mine"])
def test_a_module_that_is_not_found_says_where_it_is_looked_for(name):
    module = name.partition(":")[0]
    assert refusal(name) == (
        f"there is no module {module} where Python looks; run the command in the "
        "folder that holds it, or name that folder in PYTHONPATH"
    )


def test_a_class_that_is_not_there_is_refused_with_those_that_are(write):
    module = write(GOOD)
    told = "has no subclass of t2t_repro.problems.Problem of this name; it has"
    assert refusal(f"{module}:Revers") == f"{module} {told} Reverse"
    assert refusal(f"{module}:Problem") == f"{module} {told} Reverse"
    assert refusal("json:JSONDecoder") == f"json {told} none at all"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("def pairs", "def pears", "the class lacks the method pairs"),
        ('"en", "ne"', '"en", None', "its target_lang is None; give it a language"),
        ('"en", "ne"', '"../en", "ne"', "its source_lang is '../en'; give it a lang"),
        ("from t2t", "import absent\nfrom t2t", "No module named 'absent' ({file}:1)"),
        ("from t2t", "import sys; sys.exit(3)\nfrom t2t", "failed: SystemExit: 3 ("),
        ("class Rev", "clas Rev", "failed: SyntaxError: invalid syntax ("),
        ("    source", "    1 / 0\n    source", "failed: ZeroDivisionError: div"),
        ("[split]", "['tr']", "failed: KeyError: 'tr' ({file}:8)"),
        ("    def", "    name = property(str)\n    def", "making it failed: Attri"),
        ("yield word, word[::-1]", "yield word", "pair 1 of pairs(\"train\") is 'ab'"),
        ("word[::-1]", "len(word)", "is ('ab', 2); yield a source and a target"),
        ("yield word, word[::-1]", "pass", "'NoneType' object is not iterable"),
        ("    def", "    fingerprint = lambda s: 7\n    def", "its fingerprint is 7;"),
        ("    def", "    description = lambda s, t: ''\n    def", "description is ''"),
    ],
)
def test_a_class_that_fails_is_one_line_that_says_where(
    tmp_path, write, old, new, told
):
    module = write(GOOD.replace(old, new, 1))
    file = tmp_path / f"{module}.py"
    assert told.format(file=file) in refusal(f"{module}:Reverse")


def test_what_the_class_itself_refuses_is_told_as_it_is(write):
    text = GOOD.replace(
        "        for", "        raise UserError('no more words')\n        for"
    )
    name = write("from t2t_repro.system.errors import UserError\n" + text)
    with pytest.raises(UserError, match=r"^no more words$"):
        list(problems.create(f"{name}:Reverse").pairs("train"))
