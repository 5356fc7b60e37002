"""Tests of the parser: one tree per line, and the count of repairs."""

from __future__ import annotations

from t2t_repro.texts.translation import BLANK, Hypothesis, Translation
from t2t_repro.translation.parser import Parser, split_words


class Tagger:
    """A fake translator that looks up lines in a table."""

    limit = "7 subwords"

    def __init__(self, table):
        self.table = table
        self.inputs = []

    def fingerprint(self):
        return "f"

    def translate_window(self, lines, batch_size, progress):
        self.inputs += lines
        second = Hypothesis("NN NN", -2.0, 3, -3.0)
        return [
            Translation((Hypothesis(self.table.get(line, ""), -1.0, 3, -1.5), second))
            if line
            else Translation((BLANK,))
            for line in lines
        ]


def test_lines_become_trees_and_repairs_are_counted():
    tagger = Tagger({"the dog": "NP DT NN /NP", "-LRB- x -RRB-": "NP NN"})
    parser = Parser(tagger)
    trees = parser.translate_window(["the  dog", "", "( x )", "no"])
    assert [each.text for each in trees] == [
        "(TOP (NP (DT the) (NN dog)))",
        "",
        "(TOP (NP (NN -LRB-) (NN x) (NN -RRB-)))",
        "(TOP (S (NN no)))",
    ]
    assert tagger.inputs == ["the dog", "", "-LRB- x -RRB-", "no"]
    assert (parser.parsed, parser.repaired) == (3, 2)
    assert [each.score for each in trees] == [-1.0, 0.0, -1.0, -1.0]
    assert all(len(each.hypotheses) == 1 for each in trees)


def test_uses_the_first_hypothesis_that_is_a_tree():
    # The second hypothesis is always NN NN.
    parser = Parser(Tagger({"the dog": "NP DT NN", "a dog": "NP DT"}))
    trees = parser.translate_window(["the dog", "a dog", "one two three"])
    assert [each.text for each in trees] == [
        "(TOP (NN the) (NN dog))",
        "(TOP (NN a) (NN dog))",
        "(TOP (S (NN one) (NN two) (NN three)))",
    ]
    assert (parser.parsed, parser.repaired) == (3, 1)


def test_fingerprint_differs_from_that_of_the_translator():
    parser = Parser(Tagger({}))
    assert (parser.fingerprint(), parser.limit) == ("trees:f", "7 subwords")


def test_words_are_split_at_any_space_and_brackets_escaped():
    assert split_words(" a\u00a0b\tf(x) ") == ["a", "b", "f-LRB-x-RRB-"]
