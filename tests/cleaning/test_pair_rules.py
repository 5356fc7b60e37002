"""Tests of the rules for a pair's own text, with examples judged by hand."""

import pytest

from t2t_repro.cleaning.pair_rules import PAIR_RULES

DROPPED = [
    ("empty", "", "Haus"),
    ("empty", "house", ""),
    ("broken_characters", "bread", "Br\ufffdtchen"),
    ("broken_characters", "hear", "h?ren"),
    ("letters", "12/34/56 -- 78", "12/34/56 -- 78"),
    ("letters", "Room 4", "=== 4 ==="),
    ("word_length", "ok", "x" * 41),
    ("words", "a " * 101, "ein"),
    ("words", "ein", "\u4e2d" * 101),
    ("copy", "The kettle is hot.", "the kettle is hot"),
    ("copy", "Tea, Milk and Sugar", "tea milk and sugar"),
    ("urls", "See www.tea.example.", "Siehe www.milk.example."),
    ("urls", "Mail ann@tea.example", "Schreibe an"),
    ("numbers", "12 eggs", "13 Eier"),
    ("numbers", "It is 4:30.", "Es ist 5.30 Uhr."),
    ("numbers", "1,000,000 stars", "3.000.000 Sterne"),
    ("numbers", "10 eggs", "100 Eier"),
]
KEPT = [
    ("broken_characters", "see http://a.example/?b?c", "Was?"),
    ("letters", "Track 9", "Gleis 9"),
    ("letters", "\u041f\u0440\u0438\u0432\u0435\u0442!", "\u4f60\u597d\uff01"),
    ("word_length", "see http://tea.example/" + "x" * 60, "siehe"),
    ("copy", "Anna Berg, Oslo, is here.", "Anna Berg, Oslo, ist da."),
    ("urls", "www.tea.example", "WWW.tea.example!"),
    ("numbers", "twelve eggs", "12 Eier"),
    ("numbers", "born in 1950, aged ten", "mit 10, geboren 1950"),
    ("numbers", "2,500,000 people", "2,5 Millionen Leute"),
    ("numbers", "1.5 and 250 cm", "1,50 und 2,50 m"),
    ("numbers", "4:30 p.m.", "16.30 Uhr"),
    ("numbers", "the 1980s", "die 80er"),
    ("numbers", "70 000 francs", "70.000 Franken"),
    ("numbers", "3/12/2001", "12.3.2001"),
    ("numbers", "http://a.example/1", "http://a.example/2"),
]


def drops(rule, source, target):
    function, threshold = PAIR_RULES[rule]
    return function(source, target, threshold)


@pytest.mark.parametrize(("rule", "source", "target"), DROPPED)
def test_pair_is_dropped(rule, source, target):
    assert drops(rule, source, target)


@pytest.mark.parametrize(("rule", "source", "target"), KEPT)
def test_pair_is_kept(rule, source, target):
    assert not drops(rule, source, target)
