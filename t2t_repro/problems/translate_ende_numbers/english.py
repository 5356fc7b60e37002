"""Writes numbers, years, dates, clock times and prices in English words.

The wording is British and agrees with num2words (lang "en"), except for its comma after
"thousand".
"""

from t2t_repro.problems.translate_ende_numbers.lexicon import MONTHS, TABLES

_UNITS, _TENS = list(TABLES["units"]), list(TABLES["tens"])
_IRREGULAR_ORDINALS = TABLES["english_ordinals"]


def cardinal(n: int) -> str:
    """Returns a number from 0 to 99,999, e.g. 305: "three hundred and five"."""
    if n < 20:
        return _UNITS[n]
    if n < 100:
        tens, unit = divmod(n, 10)
        return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        head = f"{_UNITS[hundreds]} hundred"
        return f"{head} and {cardinal(rest)}" if rest else head
    thousands, rest = divmod(n, 1000)
    head = f"{cardinal(thousands)} thousand"
    if not rest:
        return head
    return f"{head} {'and ' if rest < 100 else ''}{cardinal(rest)}"


def ordinal(n: int) -> str:
    """Returns an ordinal up to 99,999, e.g. 121: "one hundred and twenty-first"."""
    words = cardinal(n)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    if last.endswith("y"):
        return f"{head}{last[:-1]}ieth"
    return f"{head}{last}th"


def year(n: int) -> str:
    """Returns a year from 1100 to 2099, e.g. 1984: "nineteen eighty-four"."""
    if 2000 <= n < 2010:
        return cardinal(n)
    century, rest = divmod(n, 100)
    if not rest:
        return f"{cardinal(century)} hundred"
    if rest < 10:
        return f"{cardinal(century)} oh-{cardinal(rest)}"
    return f"{cardinal(century)} {cardinal(rest)}"


def date(day: int, month: int, year_number: int | None = None) -> str:
    """Returns a date, e.g. (21, 5, 1984): "the twenty-first of May nineteen ..."."""
    words = f"the {ordinal(day)} of {MONTHS[month - 1].en}"
    return words if year_number is None else f"{words} {year(year_number)}"


def clock(hour: int, minute: int) -> str:
    """Returns a time on the twelve-hour clock, e.g. (4, 30): "half past four"."""
    if minute == 0:
        return f"{cardinal(hour)} o'clock"
    if minute == 30:
        return f"half past {cardinal(hour)}"
    relation = "past"
    if minute > 30:
        relation, hour, minute = "to", hour % 12 + 1, 60 - minute
    distance = "a quarter" if minute == 15 else quantity(minute, "minute", "minutes")
    return f"{distance} {relation} {cardinal(hour)}"


def price(euros: int, cents: int) -> str:
    """Returns a price, e.g. (405, 10): "four hundred and five euros and ten cents".

    Omits zero euros or cents.
    """
    units = ((euros, "euro", "euros"), (cents, "cent", "cents"))
    return " and ".join(quantity(*unit) for unit in units if unit[0])


def indefinite(following: str) -> str:
    """Returns the indefinite article, "an" before a vowel and "a" otherwise."""
    return "an" if following[0] in "aeiou" else "a"


def quantity(n: int, singular: str, plural: str) -> str:
    """Returns a number with its noun, e.g. "one minute" or "two minutes"."""
    return f"{cardinal(n)} {singular if n == 1 else plural}"
