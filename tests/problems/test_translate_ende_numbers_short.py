"""Tests of short inputs and spellings with hand-written German."""

import random

import pytest

from t2t_repro.problems.translate_ende_numbers import clauses, english, german, lexicon
from t2t_repro.problems.translate_ende_numbers.german import ACCUSATIVE, DATIVE
from t2t_repro.problems.translate_ende_numbers.german import NOMINATIVE as NOM
from t2t_repro.problems.translate_ende_numbers.partition import Values, choose_split
from t2t_repro.problems.translate_ende_numbers.sentences import KINDS
from t2t_repro.problems.translate_ende_numbers.short_sentences import ShortMaker
from t2t_repro.problems.translate_ende_numbers.spelling import SPELLINGS, respell
from t2t_repro.problems.translate_ende_numbers.words import words


@pytest.fixture(scope="module")
def german_by_english() -> dict[str, str]:
    """Translations of many short inputs with a few values of each kind."""
    values = Values(
        hundreds=[365],
        thousands=[4096],
        years=[1984],
        counts=[(2, "tree")],
        ordinals=[(8, "table")],
        days=[(3, 3), (7, 11)],
        times=[(8, 30), (4, 0), (3, 15), (5, 20), (9, 7)],
        prices=[(17, 0), (0, 1), (49, 5)],
    )
    maker = ShortMaker(random.Random(3), values)
    inputs = (maker.make(kind) for _ in range(3_000) for kind in KINDS)
    return {phrase.en: phrase.de for phrase in map(clauses.finish, inputs)}


@pytest.mark.parametrize(
    ("en", "de"),
    [
        ("three hundred and sixty-five", "dreihundertfünfundsechzig"),
        ("four thousand and ninety-six", "viertausendsechsundneunzig"),
        ("two trees", "zwei Bäume"),
        ("two trees and two trees", "zwei Bäume und zwei Bäume"),
        ("the eighth table", "der achte Tisch"),
        ("the eighth table is old", "der achte Tisch ist alt"),
        ("the third of March", "der dritte März"),
        ("on the seventh of November", "am siebten November"),
        ("half past eight", "halb neun"),
        ("at four o'clock", "um vier Uhr"),
        ("a quarter past three", "Viertel nach drei"),
        ("quarter past three", "Viertel nach drei"),
        ("twenty past five", "zwanzig nach fünf"),
        ("at seven minutes past nine", "um sieben Minuten nach neun"),
        ("it was half past eight", "es war halb neun"),
        ("the bus arrives at four o'clock", "der Bus kommt um vier Uhr an"),
        ("seventeen euros", "siebzehn Euro"),
        ("one cent", "ein Cent"),
        ("it costs one cent", "es kostet einen Cent"),
        ("forty-nine euros and five cents", "neunundvierzig Euro und fünf Cent"),
        ("I sell two trees", "ich verkaufe zwei Bäume"),
        ("we offer two trees", "wir bieten zwei Bäume an"),
        ("she has two trees", "sie hat zwei Bäume"),
        ("they had two trees", "sie hatten zwei Bäume"),
        ("I need two trees", "ich brauche zwei Bäume"),
        ("the course is on the third of March", "der Kurs ist am dritten März"),
        (
            "the concert will be on the seventh of November",
            "das Konzert wird am siebten November sein",
        ),
        ("the concert was at half past eight", "das Konzert war um halb neun"),
        ("today is the third of March", "heute ist der dritte März"),
        ("yesterday was the seventh of November", "gestern war der siebte November"),
    ],
)
def test_translates_single_values(
    german_by_english: dict[str, str], en: str, de: str
) -> None:
    assert german_by_english[en] == de


def test_clauses_without_a_value_have_german_word_order() -> None:
    maker = ShortMaker(random.Random(7), Values("train"))
    inputs = (maker.make("clause") for _ in range(60_000))
    german_of = {phrase.en: phrase.de for phrase in inputs}
    expected = {
        "they will arrive tomorrow": "sie werden morgen ankommen",
        "tomorrow they will arrive": "morgen werden sie ankommen",
        "the house is old": "das Haus ist alt",
        "he slept last week": "er schlief letzte Woche",
        "my sister wants to meet Paul": "meine Schwester will Paul treffen",
        "I will call Anna": "ich werde Anna anrufen",
        "last week I arrived": "letzte Woche kam ich an",
        "the concert was on Monday": "das Konzert war am Montag",
        "the lecture will be on Sunday": "der Vortrag wird am Sonntag sein",
        "I have a house": "ich habe ein Haus",
        "the children need the key": "die Kinder brauchen den Schlüssel",
        "he had the boat": "er hatte das Boot",
        "the meeting will take place": "die Sitzung wird stattfinden",
    }
    in_train = {en: de for en, de in expected.items() if choose_split(en) == "train"}
    assert len(in_train) >= 9
    assert in_train.items() <= german_of.items()
    assert all(choose_split(en) == "train" for en in german_of)


def test_present_tense_agrees_with_its_subject() -> None:
    forms = {
        (verb, person): clauses.conjugate(lexicon.VERBS[verb], person, "present")
        for verb in ("buy", "see", "pick up", "meet", "have", "need")
        for person in ("1", "3", "p")
    }
    assert {key: (form.en, form.finite) for key, form in forms.items()} == {
        ("buy", "1"): ("buy", "kaufe"),
        ("buy", "3"): ("buys", "kauft"),
        ("buy", "p"): ("buy", "kaufen"),
        ("see", "1"): ("see", "sehe"),
        ("see", "3"): ("sees", "sieht"),
        ("see", "p"): ("see", "sehen"),
        ("pick up", "1"): ("pick up", "hole"),
        ("pick up", "3"): ("picks up", "holt"),
        ("pick up", "p"): ("pick up", "holen"),
        ("meet", "1"): ("meet", "treffe"),
        ("meet", "3"): ("meets", "trifft"),
        ("meet", "p"): ("meet", "treffen"),
        ("have", "1"): ("have", "habe"),
        ("have", "3"): ("has", "hat"),
        ("have", "p"): ("have", "haben"),
        ("need", "1"): ("need", "brauche"),
        ("need", "3"): ("needs", "braucht"),
        ("need", "p"): ("need", "brauchen"),
    }
    assert forms["pick up", "3"].closing == "ab"


def test_to_be_agrees_with_its_subject() -> None:
    forms = {
        (person, tense): clauses.be(person, tense)[:2]
        for person in ("1", "3", "p")
        for tense in ("present", "past")
    }
    assert forms == {
        ("1", "present"): ("am", "bin"),
        ("1", "past"): ("was", "war"),
        ("3", "present"): ("is", "ist"),
        ("3", "past"): ("was", "war"),
        ("p", "present"): ("are", "sind"),
        ("p", "past"): ("were", "waren"),
    }


def test_passive_agrees_with_its_subject() -> None:
    bear = lexicon.VERBS["bear"]
    forms = {person: clauses.conjugate(bear, person, "passive") for person in "13p"}
    assert {person: form[:3] for person, form in forms.items()} == {
        "1": ("was born", "wurde", "geboren"),
        "3": ("was born", "wurde", "geboren"),
        "p": ("were born", "wurden", "geboren"),
    }


@pytest.mark.parametrize(
    ("gender", "case", "expected"),
    [
        ("m", NOM, "ein alter"),
        ("f", NOM, "eine alte"),
        ("n", NOM, "ein altes"),
        ("m", ACCUSATIVE, "einen alten"),
        ("n", ACCUSATIVE, "ein altes"),
        ("m", DATIVE, "einem alten"),
        ("f", DATIVE, "einer alten"),
        ("n", DATIVE, "einem alten"),
    ],
)
def test_adjective_after_the_indefinite_article(
    gender: str, case: str, expected: str
) -> None:
    adjective = german.decline_mixed("alt", case, gender)
    assert f"{german.indefinite(case, gender)} {adjective}" == expected


def test_article_is_an_before_a_vowel() -> None:
    phrases = [f"{english.indefinite(word)} {word}" for word in ("egg", "old", "key")]
    assert phrases == ["an egg", "an old", "a key"]


@pytest.mark.parametrize(
    ("spelling", "en", "de"),
    [
        ("plain", "forty-two trees", "zweiundvierzig Bäume"),
        ("sentence", "Forty-two trees.", "Zweiundvierzig Bäume."),
        ("capital", "Forty-two trees", "Zweiundvierzig Bäume"),
        ("full stop", "forty-two trees.", "zweiundvierzig Bäume."),
        ("no hyphens", "forty two trees", "zweiundvierzig Bäume"),
        ("lower case", "forty-two trees", "zweiundvierzig Bäume"),
        ("upper case", "FORTY-TWO TREES", "zweiundvierzig Bäume"),
        ("title case", "Forty-Two Trees", "Zweiundvierzig Bäume"),
    ],
)
def test_german_of_every_english_spelling(spelling: str, en: str, de: str) -> None:
    pair = respell("forty-two trees", "zweiundvierzig Bäume", spelling)
    assert pair == (en, de)


def test_each_english_spelling_has_one_german() -> None:
    german_of: dict[str, set[str]] = {}
    for spelling in SPELLINGS:
        en, de = respell("I will read", "ich werde lesen", spelling)
        german_of.setdefault(en, set()).add(de)
    assert german_of == {
        "I will read": {"ich werde lesen"},
        "I will read.": {"Ich werde lesen."},
        "i will read": {"ich werde lesen"},
        "I WILL READ": {"ich werde lesen"},
        "I Will Read": {"ich werde lesen"},
    }


def test_translates_single_words() -> None:
    german_of = {word.en: word.de for word in words()}
    expected = {
        "zero": "null",
        "ninety-nine": "neunundneunzig",
        "one tree": "ein Baum",
        "an apple": "ein Apfel",
        "the bottle": "die Flasche",
        "the houses": "die Häuser",
        "today is Friday": "heute ist Freitag",
        "yesterday was Sunday": "gestern war Sonntag",
        "Munich": "München",
        "heavy": "schwer",
    }
    assert expected.items() <= german_of.items()
    assert len(german_of) == len(list(words()))
