"""Writes numbers, years, dates, clock times and prices in German words.

The spelling agrees with num2words (lang "de"): 100 and 1,000 are "einhundert" and
"eintausend" as cardinals, but "hundertste" and "tausendste" as ordinals.
"""

from t2t_repro.problems.translate_ende_numbers.lexicon import MONTHS, TABLES

_UNITS, _TENS = list(TABLES["units"].values()), list(TABLES["tens"].values())
_IRREGULAR_ORDINALS = TABLES["german_ordinals"]

NOMINATIVE, ACCUSATIVE, DATIVE = "nominative", "accusative", "dative"


def definite(case: str, gender: str) -> str:
    """Returns the definite article: "der", "die", "das", "den" or "dem"."""
    return TABLES["definite_articles"][case][gender]


def indefinite(case: str, gender: str) -> str:
    """Returns the indefinite article: "ein" with its ending."""
    return TABLES["indefinite_articles"][case][gender]


def decline_weak(stem: str, case: str, gender: str) -> str:
    """Returns an adjective with its weak ending, used after the definite article."""
    unmarked = gender != "p" and (
        case == NOMINATIVE or (case == ACCUSATIVE and gender != "m")
    )
    return stem + ("e" if unmarked else "en")


def decline_mixed(stem: str, case: str, gender: str) -> str:
    """Returns an adjective with its mixed ending, used after the indefinite article."""
    if gender == "m" and case == NOMINATIVE:
        return f"{stem}er"
    if gender == "n" and case != DATIVE:
        return f"{stem}es"
    return decline_weak(stem, case, gender)


def cardinal(n: int, final_one: str = "eins") -> str:
    """Returns a number as one word, e.g. 4305: "viertausenddreihundertfünf".

    Args:
        n: Number from 0 to 99,999.
        final_one: Form of a final "one": "eins", or "ein" inside of a word.
    """
    if n == 1:
        return final_one
    if n < 20:
        return _UNITS[n]
    if n < 100:
        tens, unit = divmod(n, 10)
        return (f"{cardinal(unit, 'ein')}und" if unit else "") + _TENS[tens - 2]
    size, word = (1000, "tausend") if n >= 1000 else (100, "hundert")
    count, rest = divmod(n, size)
    head = cardinal(count, "ein") + word
    return head + cardinal(rest, final_one) if rest else head


def ordinal(n: int) -> str:
    """Returns the base form of an ordinal up to 99,999, e.g. 21: "einundzwanzigste"."""
    if n in (100, 1000):
        return cardinal(n).removeprefix("ein") + "ste"
    rest = n % 100
    if rest in _IRREGULAR_ORDINALS:
        head = cardinal(n - rest) if n > rest else ""
        return head + _IRREGULAR_ORDINALS[rest]
    return cardinal(n) + ("te" if 1 <= rest < 20 else "ste")


def decline_ordinal(n: int, case: str, gender: str) -> str:
    """Returns an ordinal as used after the definite article, e.g. "zweiten"."""
    return decline_weak(ordinal(n).removesuffix("e"), case, gender)


def year(n: int) -> str:
    """Returns a year from 1100 to 2099, e.g. 1984: "neunzehnhundertvierundachtzig"."""
    if n >= 2000:
        return cardinal(n)
    century, rest = divmod(n, 100)
    return f"{cardinal(century)}hundert" + (cardinal(rest) if rest else "")


def date(day: int, month: int, case: str, year_number: int | None = None) -> str:
    """Returns a date without article, e.g. "einundzwanzigsten Mai"."""
    words = f"{decline_ordinal(day, case, 'm')} {MONTHS[month - 1].de}"
    return words if year_number is None else f"{words} {year(year_number)}"


def clock(hour: int, minute: int) -> str:
    """Returns a time on the twelve-hour clock, e.g. (4, 30): "halb fünf".

    From minute 21 to minute 39 German counts from the half hour, which is named after
    the next hour: (4, 25) is "fünf Minuten vor halb fünf".
    """
    if minute == 0:
        return f"{cardinal(hour, 'ein')} Uhr"
    next_hour = cardinal(hour % 12 + 1)
    if minute == 30:
        return f"halb {next_hour}"
    if minute <= 20:
        distance, reference = minute, f"nach {cardinal(hour)}"
    elif minute < 30:
        distance, reference = 30 - minute, f"vor halb {next_hour}"
    elif minute < 40:
        distance, reference = minute - 30, f"nach halb {next_hour}"
    else:
        distance, reference = 60 - minute, f"vor {next_hour}"
    if distance == 15:
        return f"Viertel {reference}"
    minutes = "eine Minute" if distance == 1 else f"{cardinal(distance)} Minuten"
    return f"{minutes} {reference}"


def price(euros: int, cents: int, case: str = ACCUSATIVE) -> str:
    """Returns a price, e.g. (405, 10): "vierhundertfünf Euro und zehn Cent".

    Omits zero euros or cents. The case affects only the number one: "ein", "einen" or
    "einem Euro".
    """
    one = indefinite(case, "m")
    return " und ".join(
        f"{one if n == 1 else cardinal(n)} {unit}"
        for n, unit in ((euros, "Euro"), (cents, "Cent"))
        if n
    )
