"""Tests of the wording of numbers, dates, times and prices."""

import pytest
from num2words import num2words

from t2t_repro.problems.translate_ende_numbers import english, german
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)

# All numbers up to 2,100, then every 37th, which includes each digit in each place.
NUMBERS = (*range(1, 2100), *range(2100, 100_000, 37))


def test_german_cardinals_agree_with_num2words() -> None:
    for n in (0, *NUMBERS):
        assert german.cardinal(n) == num2words(n, lang="de")


def test_english_cardinals_agree_with_num2words_except_for_commas() -> None:
    for n in (0, *NUMBERS):
        assert english.cardinal(n) == num2words(n, lang="en").replace(",", "")


def test_german_ordinals_agree_with_num2words() -> None:
    for n in NUMBERS:
        assert german.ordinal(n) == num2words(n, lang="de", to="ordinal")


def test_english_ordinals_agree_with_num2words() -> None:
    for n in NUMBERS:
        expected = num2words(n, lang="en", to="ordinal").replace(",", "")
        assert english.ordinal(n) == expected


def test_years_agree_with_num2words_in_both_languages() -> None:
    for n in range(1100, 2100):
        assert german.year(n) == num2words(n, lang="de", to="year")
        assert english.year(n) == num2words(n, lang="en", to="year")


@pytest.mark.parametrize(
    ("hour", "minute", "en", "de"),
    [
        (1, 0, "one o'clock", "ein Uhr"),
        (12, 0, "twelve o'clock", "zwölf Uhr"),
        (4, 30, "half past four", "halb fünf"),
        (12, 30, "half past twelve", "halb eins"),
        (1, 15, "a quarter past one", "Viertel nach eins"),
        (6, 45, "a quarter to seven", "Viertel vor sieben"),
        (12, 45, "a quarter to one", "Viertel vor eins"),
        (3, 1, "one minute past three", "eine Minute nach drei"),
        (3, 20, "twenty minutes past three", "zwanzig Minuten nach drei"),
        (3, 25, "twenty-five minutes past three", "fünf Minuten vor halb vier"),
        (3, 29, "twenty-nine minutes past three", "eine Minute vor halb vier"),
        (3, 35, "twenty-five minutes to four", "fünf Minuten nach halb vier"),
        (3, 40, "twenty minutes to four", "zwanzig Minuten vor vier"),
        (11, 59, "one minute to twelve", "eine Minute vor zwölf"),
    ],
)
def test_clock_times(hour: int, minute: int, en: str, de: str) -> None:
    assert (english.clock(hour, minute), german.clock(hour, minute)) == (en, de)


def test_all_times_have_different_words_in_both_languages() -> None:
    times = [(hour, minute) for hour in range(1, 13) for minute in range(60)]
    assert len({english.clock(*time) for time in times}) == 720
    assert len({german.clock(*time) for time in times}) == 720


@pytest.mark.parametrize(
    ("euros", "cents", "en", "de"),
    [
        (1, 0, "one euro", "einen Euro"),
        (0, 1, "one cent", "einen Cent"),
        (1, 1, "one euro and one cent", "einen Euro und einen Cent"),
        (21, 0, "twenty-one euros", "einundzwanzig Euro"),
        (101, 0, "one hundred and one euros", "einhunderteins Euro"),
        (0, 45, "forty-five cents", "fünfundvierzig Cent"),
        (
            405,
            10,
            "four hundred and five euros and ten cents",
            "vierhundertfünf Euro und zehn Cent",
        ),
    ],
)
def test_prices_agree_with_the_number_of_their_units(
    euros: int, cents: int, en: str, de: str
) -> None:
    assert english.price(euros, cents) == en
    assert german.price(euros, cents, ACCUSATIVE) == de


def test_one_euro_is_declined() -> None:
    assert german.price(1, 0, NOMINATIVE) == "ein Euro"
    assert german.price(1, 0, DATIVE) == "einem Euro"


@pytest.mark.parametrize(
    ("n", "case", "gender", "expected"),
    [
        (21, NOMINATIVE, "m", "einundzwanzigste"),
        (21, ACCUSATIVE, "m", "einundzwanzigsten"),
        (21, DATIVE, "m", "einundzwanzigsten"),
        (2, NOMINATIVE, "n", "zweite"),
        (2, ACCUSATIVE, "n", "zweite"),
        (2, DATIVE, "n", "zweiten"),
        (7, ACCUSATIVE, "f", "siebte"),
        (7, DATIVE, "f", "siebten"),
        (3, NOMINATIVE, "p", "dritten"),
    ],
)
def test_ordinals_have_weak_endings(
    n: int, case: str, gender: str, expected: str
) -> None:
    assert german.decline_ordinal(n, case, gender) == expected


def test_dates_decline_the_day_but_not_the_year() -> None:
    assert english.date(3, 3, 1984) == "the third of March nineteen eighty-four"
    assert german.date(21, 5, DATIVE) == "einundzwanzigsten Mai"
    assert (
        german.date(3, 3, NOMINATIVE, 1984)
        == "dritte März neunzehnhundertvierundachtzig"
    )
