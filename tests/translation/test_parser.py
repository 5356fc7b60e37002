"""A parser gives a tree for every line, and tells how often it had to repair."""

from __future__ import annotations

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.translation.parser import Parser, words_of
from t2t_repro.translation.translator import ScoredText, Translation


class Tagger:
    """Translates by a table, as a translator would."""

    search = DecodingConfig()
    max_input_length = 7

    def __init__(self, table):
        self.table = table
        self.asked = []

    def fingerprint(self):
        return "f"

    def translate_window(self, lines, batch_size, progress, prefixes):
        self.asked += lines
        return [
            Translation(
                self.table.get(line, ""),
                *(-1.0, 3, -1.5, False),
                others=(ScoredText("NN NN", -2.0, 3, -3.0),) if line else (),
            )
            for line in lines
        ]


def test_lines_become_trees_and_repairs_are_counted():
    tagger = Tagger({"the dog": "NP DT NN /NP", "-LRB- x -RRB-": "NP NN"})
    parser = Parser(tagger)
    found = parser.translate_window(["the  dog", "", "( x )", "no"])
    assert [each.text for each in found] == [
        "(TOP (NP (DT the) (NN dog)))",
        "",
        "(TOP (NP (NN -LRB-) (NN x) (NN -RRB-)))",
        "(TOP (S (NN no)))",
    ]
    assert tagger.asked == ["the dog", "", "-LRB- x -RRB-", "no"]
    assert (parser.parsed, parser.repaired) == (3, 2)
    assert [each.score for each in found] == [-1.0] * 4
    assert all(each.others == () for each in found)


def test_the_first_hypothesis_that_is_a_tree_is_taken():
    # The second hypothesis is always NN NN.
    parser = Parser(Tagger({"the dog": "NP DT NN", "a dog": "NP DT"}))
    found = parser.translate_window(["the dog", "a dog", "one two three"])
    assert [each.text for each in found] == [
        "(TOP (NN the) (NN dog))",
        "(TOP (NN a) (NN dog))",
        "(TOP (S (NN one) (NN two) (NN three)))",
    ]
    assert (parser.parsed, parser.repaired) == (3, 1)


def test_it_is_told_from_the_translator_inside():
    parser = Parser(Tagger({}))
    assert parser.fingerprint() == "trees:f"
    assert parser.max_input_length == 7


def test_words_are_split_at_any_space_and_brackets_escaped():
    assert words_of(" a\u00a0b\tf(x) ") == ["a", "b", "f-LRB-x-RRB-"]
