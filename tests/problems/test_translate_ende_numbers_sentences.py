"""Tests of German word order and agreement with hand-written translations."""

import random

import pytest

from t2t_repro.problems.translate_ende_numbers import clauses, lexicon
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)
from t2t_repro.problems.translate_ende_numbers.partition import Values
from t2t_repro.problems.translate_ende_numbers.phrase import Phrase
from t2t_repro.problems.translate_ende_numbers.phrases import PhraseMaker

SUBJECTS = {subject.phrase.en: subject for subject in lexicon.SUBJECTS}
VERBS = {verb.en: verb for verb in lexicon.THING_VERBS}
BOOKS = Phrase("twenty-three books", "dreiundzwanzig Bücher")
FRIDAY = Phrase("on Friday the third of March", "am Freitag, dem dritten März,")
MEETING = Phrase("the meeting", "die Sitzung")
WE_KNOW_THAT = Phrase("we know that", "wir wissen, dass")
NOTHING = Phrase("", "")


def who(name: str) -> Phrase:
    return SUBJECTS[name].phrase


@pytest.mark.parametrize(
    ("subject", "verb", "tense", "expected"),
    [
        ("he", "buy", "past", "er kaufte dreiundzwanzig Bücher"),
        ("they", "find", "past", "sie fanden dreiundzwanzig Bücher"),
        ("I", "find", "past", "ich fand dreiundzwanzig Bücher"),
        ("she", "offer", "past", "sie bot dreiundzwanzig Bücher an"),
        ("we", "offer", "past", "wir boten dreiundzwanzig Bücher an"),
        ("I", "pick up", "perfect", "ich habe dreiundzwanzig Bücher abgeholt"),
        ("she", "see", "perfect", "sie hat dreiundzwanzig Bücher gesehen"),
        ("they", "offer", "future", "sie werden dreiundzwanzig Bücher anbieten"),
        (
            "my sister",
            "buy",
            "want",
            "meine Schwester will dreiundzwanzig Bücher kaufen",
        ),
    ],
)
def test_main_clause_ends_with_the_rest_of_the_verb(
    subject: str, verb: str, tense: str, expected: str
) -> None:
    group = clauses.conjugate(VERBS[verb], SUBJECTS[subject].person, tense)
    assert clauses.main_clause(who(subject), group, BOOKS).de == expected


@pytest.mark.parametrize(
    ("verb", "tense", "expected"),
    [
        ("buy", "past", "er dreiundzwanzig Bücher kaufte"),
        ("offer", "past", "er dreiundzwanzig Bücher anbot"),
        ("pick up", "perfect", "er dreiundzwanzig Bücher abgeholt hat"),
        ("pick up", "future", "er dreiundzwanzig Bücher abholen wird"),
    ],
)
def test_that_clause_ends_with_its_finite_verb(
    verb: str, tense: str, expected: str
) -> None:
    group = clauses.conjugate(VERBS[verb], "3", tense)
    sentence = clauses.that_clause(WE_KNOW_THAT, who("he"), group, BOOKS)
    assert sentence.de == f"wir wissen, dass {expected}"


def test_subject_follows_the_verb_after_an_adverb() -> None:
    group = clauses.conjugate(VERBS["buy"], "p", "past")
    yesterday = Phrase("yesterday", "gestern")
    sentence = clauses.inverted_clause(yesterday, who("the children"), group, BOOKS)
    assert sentence.en == "yesterday the children bought twenty-three books"
    assert sentence.de == "gestern kauften die Kinder dreiundzwanzig Bücher"


def test_date_keeps_its_comma_except_at_the_end() -> None:
    begins = clauses.conjugate(lexicon.VERBS["begin"], "3", "present")
    takes_place = clauses.conjugate(lexicon.VERBS["take place"], "3", "present")
    date = "am Freitag, dem dritten März"
    assert clauses.main_clause(MEETING, begins, FRIDAY) == Phrase(
        "the meeting begins on Friday the third of March",
        f"die Sitzung beginnt {date}",
    )
    assert clauses.main_clause(MEETING, takes_place, FRIDAY).de == (
        f"die Sitzung findet {date}, statt"
    )
    assert clauses.that_clause(WE_KNOW_THAT, MEETING, takes_place, FRIDAY).de == (
        f"wir wissen, dass die Sitzung {date}, stattfindet"
    )
    assert clauses.inverted_clause(FRIDAY, MEETING, begins, NOTHING).de == (
        f"{date}, beginnt die Sitzung"
    )


def test_separable_verb_of_departure() -> None:
    train, time = Phrase("the train", "der Zug"), Phrase("at noon", "um zwölf Uhr")
    sentences = {
        tense: clauses.main_clause(
            train, clauses.conjugate(lexicon.VERBS["leave"], "3", tense), time
        ).de
        for tense in ("present", "past", "future")
    }
    assert sentences == {
        "present": "der Zug fährt um zwölf Uhr ab",
        "past": "der Zug fuhr um zwölf Uhr ab",
        "future": "der Zug wird um zwölf Uhr abfahren",
    }


def phrases_of(noun: str, number: int) -> PhraseMaker:
    """Returns a generator of phrases with only this noun and number."""
    values = Values(
        hundreds=[number],
        thousands=[number],
        years=[1984],
        counts=[(number, noun)],
        ordinals=[(number, noun)],
        days=[(21, 5)],
        times=[(4, 30)],
        prices=[(1, 10)],
    )
    return PhraseMaker(random.Random(1), values)


def one_noun(name: str) -> list[lexicon.Noun]:
    return [noun for noun in lexicon.NOUNS if noun.en == name]


@pytest.mark.parametrize(
    ("noun", "case", "plain", "green"),
    [
        ("house", NOMINATIVE, "das zweite Haus", "das zweite grüne Haus"),
        ("house", DATIVE, "dem zweiten Haus", "dem zweiten grünen Haus"),
        ("tree", NOMINATIVE, "der zweite Baum", "der zweite grüne Baum"),
        ("tree", ACCUSATIVE, "den zweiten Baum", "den zweiten grünen Baum"),
        ("door", ACCUSATIVE, "die zweite Tür", "die zweite grüne Tür"),
        ("door", DATIVE, "der zweiten Tür", "der zweiten grünen Tür"),
    ],
)
def test_numbered_things_agree_in_case_and_gender(
    noun: str, case: str, plain: str, green: str
) -> None:
    maker = phrases_of(noun, 2)
    phrases = {maker.ordinal_phrase(one_noun(noun), case) for _ in range(300)}
    german = {phrase.en: phrase.de for phrase in phrases}
    assert german[f"the second {noun}"] == plain
    assert german[f"the second green {noun}"] == green
    assert {phrase.values for phrase in phrases} == {(("ordinal", 2, noun),)}


@pytest.mark.parametrize(
    ("case", "plain", "red"),
    [
        (ACCUSATIVE, "sechzehn Bücher", "sechzehn rote Bücher"),
        (DATIVE, "sechzehn Büchern", "sechzehn roten Büchern"),
    ],
)
def test_counted_things_agree_in_case(case: str, plain: str, red: str) -> None:
    maker = phrases_of("book", 16)
    phrases = [maker.quantity(one_noun("book"), case, few=True) for _ in range(300)]
    german = {phrase.en: phrase.de for phrase in phrases}
    assert german["sixteen books"] == plain
    assert german["sixteen red books"] == red


def test_german_day_precedes_the_time() -> None:
    maker = phrases_of("book", 16)
    german = {p.en: p.de for p in (maker.time_phrase() for _ in range(300))}
    assert german["at half past four"] == "um halb fünf"
    assert german["at half past four in the afternoon"] == "nachmittags um halb fünf"
    assert german["at half past four on Friday"] == "am Freitag um halb fünf"
    assert german["at half past four on the twenty-first of May"] == (
        "am einundzwanzigsten Mai um halb fünf"
    )
    assert german["at half past four on Friday the twenty-first of May"] == (
        "am Freitag, dem einundzwanzigsten Mai, um halb fünf"
    )


# Written by hand from a dictionary, independently of the lexicon.
ARTICLES = {
    "der": "Apfel Brief Schlüssel Stein Tisch Stuhl Baum",
    "die": "Lampe Flasche Tasse Münze Blume Tür Bank",
    "das": "Buch Bild Hemd Ei Haus Auto Fahrrad Fenster Boot",
}


def test_nouns_have_the_gender_of_the_dictionary() -> None:
    genders = {"m": "der", "f": "die", "n": "das"}
    expected = {noun: art for art, nouns in ARTICLES.items() for noun in nouns.split()}
    assert {noun.de: genders[noun.gender] for noun in lexicon.NOUNS} == expected
