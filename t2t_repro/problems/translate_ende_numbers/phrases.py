"""Phrases that carry a value: counted things, numbered things, prices, times."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from t2t_repro.problems.translate_ende_numbers import english, german
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
)
from t2t_repro.problems.translate_ende_numbers.lexicon import (
    ADJECTIVES,
    DAY_PARTS,
    NOUNS,
    WEEKDAYS,
    Noun,
    Pair,
)
from t2t_repro.problems.translate_ende_numbers.partition import Value, Values

_NOUN_OF = {noun.en: noun for noun in NOUNS}
_ADJECTIVE_SHARE = 0.3
_SMALL_COUNT_SHARE = 0.2
_SMALL_ORDINAL_SHARE = 0.65
_SMALL_PRICE_SHARE = 0.5
_YEAR_SHARE = 0.5


class Phrase(NamedTuple):
    """A piece of English, its German, and the composed values that it states."""

    en: str
    de: str
    values: tuple[Value, ...]

    @property
    def pair(self) -> Pair:
        """The words without the values."""
        return Pair(self.en, self.de)


def joined(en: str, de: str, *phrases: Phrase) -> Phrase:
    """Fills phrases into a pattern of each language, e.g. "from {0} until {1}"."""
    return Phrase(
        en.format(*(phrase.en for phrase in phrases)),
        de.format(*(phrase.de for phrase in phrases)),
        tuple(value for phrase in phrases for value in phrase.values),
    )


class PhraseMaker:
    """Makes phrases from the values of one split."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        """Takes what makes every choice, and the values of a split."""
        self.rng = rng
        self._values = values
        self._round_prices = [price for price in values.prices if 0 in price]
        self._round_times = [time for time in values.times if time[1] % 15 == 0]

    def counted(self, nouns: Sequence[Noun], case: str, *, few: bool = False) -> Phrase:
        """Returns e.g. "four hundred red books", "vierhundert rote Bücher".

        `few` counts below 100 only.
        """
        value: Value
        if few or self.rng.random() < _SMALL_COUNT_SHARE:
            most = self.rng.choice((12, 99))
            n, name = self._choose_pair(self._values.counts, nouns, most)
            noun, value = _NOUN_OF[name], ("count", n, name)
        else:
            pools = (self._values.hundreds, self._values.thousands)
            n, noun = self.rng.choice(self.rng.choice(pools)), self.rng.choice(nouns)
            value = ("number", n)
        adjective = self._adjective()
        # Without an article the adjective shows the case itself: "rote Bücher".
        ending = "en" if case == DATIVE else "e"
        de_adjective = f"{adjective.de}{ending} " if adjective.de else ""
        plural = noun.de_dative_plural if case == DATIVE else noun.de_plural
        return Phrase(
            f"{english.cardinal(n)} {_spaced(adjective.en)}{noun.en_plural}",
            f"{german.cardinal(n)} {de_adjective}{plural}",
            (value,),
        )

    def numbered(self, nouns: Sequence[Noun], case: str) -> Phrase:
        """Returns e.g. "the second old house", "dem zweiten alten Haus"."""
        if self.rng.random() < _SMALL_ORDINAL_SHARE:
            most = self.rng.choice((12, 99))
            n, name = self._choose_pair(self._values.ordinals, nouns, most)
            noun = _NOUN_OF[name]
        else:
            n, noun = self.rng.choice(self._values.hundreds), self.rng.choice(nouns)
        adjective = self._adjective()
        de_words = [
            german.definite(case, noun.gender),
            german.declined_ordinal(n, case, noun.gender),
            noun.de,
        ]
        if adjective.de:
            de_words.insert(2, german.after_definite(adjective.de, case, noun.gender))
        return Phrase(
            f"the {english.ordinal(n)} {_spaced(adjective.en)}{noun.en}",
            " ".join(de_words),
            (("ordinal", n, noun.en),),
        )

    def described(self, case: str) -> Pair:
        """Returns a thing without a value: "the old table", "den alten Tisch"."""
        noun, adjective = self.rng.choice(NOUNS), self.rng.choice(ADJECTIVES)
        declined = german.after_definite(adjective.de, case, noun.gender)
        return Pair(
            f"the {adjective.en} {noun.en}",
            f"{german.definite(case, noun.gender)} {declined} {noun.de}",
        )

    def price(self, case: str = ACCUSATIVE, *, round_share: float = 0.0) -> Phrase:
        """Returns a price; `round_share` of those below 100 euros have one unit only.

        These are whole euros, or cents without euros.
        """
        if self.rng.random() < _SMALL_PRICE_SHARE:
            pool = self._values.prices
            if self.rng.random() < round_share:
                pool = self._round_prices
            euros, cents = self.rng.choice(pool)
        else:
            euros = self.rng.choice(self._values.hundreds)
            cents = self.rng.choice((0, self.rng.randint(1, 99)))
        return Phrase(
            english.price(euros, cents),
            german.price(euros, cents, case),
            (("price", euros, cents),),
        )

    def clock(self, *, round_share: float = 0.2) -> Phrase:
        """Returns a time without preposition; `round_share` are quarters of an hour."""
        pool = self._values.times
        if self.rng.random() < round_share:
            pool = self._round_times
        hour, minute = self.rng.choice(pool)
        return Phrase(
            english.clock(hour, minute),
            german.clock(hour, minute),
            (("time", hour, minute),),
        )

    def date(self, case: str, *, year: bool = True) -> Phrase:
        """Returns a date, perhaps with a year, its German without article."""
        day, month = self.rng.choice(self._values.days)
        value: Value = ("date", day, month)
        number = None
        if year and self.rng.random() < _YEAR_SHARE:
            number = self.rng.choice(self._values.years)
            value = (*value, number)
        return Phrase(
            english.date(day, month, number),
            german.date(day, month, case, number),
            (value,),
        )

    def weekday_date(self, case: str) -> Phrase:
        """Returns e.g. "Friday the third of March", "Freitag, dem dritten März,"."""
        weekday = self.rng.choice(WEEKDAYS)
        article = german.definite(case, "m")
        date = self.date(case, year=False)
        return joined(f"{weekday.en} {{0}}", f"{weekday.de}, {article} {{0}},", date)

    def on_date(self) -> Phrase:
        """Returns a day with "on", or rarely "before" or "after"."""
        kind = self.rng.choice(("on", "on", "on weekday", "on weekday", "around"))
        if kind == "on":
            return joined("on {0}", "am {0}", self.date(DATIVE))
        if kind == "on weekday":
            return joined("on {0}", "am {0}", self.weekday_date(DATIVE))
        patterns = (("before {0}", "vor dem {0}"), ("after {0}", "nach dem {0}"))
        return joined(*self.rng.choice(patterns), self.date(DATIVE))

    def at_time(self) -> Phrase:
        """Returns a time with "at", often with its day; German says the day first."""
        clock = self.clock()
        kind = self.rng.choice(("time", "part", "weekday", "date", "weekday date"))
        if kind == "date":
            date = self.date(DATIVE, year=False)
            return joined("at {0} on {1}", "am {1} um {0}", clock, date)
        if kind == "weekday date":
            date = self.weekday_date(DATIVE)
            return joined("at {0} on {1}", "am {1} um {0}", clock, date)
        if kind == "weekday":
            day = self.rng.choice(WEEKDAYS)
            return joined(f"at {{0}} on {day.en}", f"am {day.de} um {{0}}", clock)
        parts = _day_parts(clock)
        if kind == "part" and parts:
            part = self.rng.choice(parts)
            return joined(f"at {{0}} {part.en}", f"{part.de} um {{0}}", clock)
        return joined("at {0}", "um {0}", clock)

    def from_until_time(self) -> Phrase:
        """Returns a stretch of time, e.g. "from ... until half past four"."""
        clocks = self._two_different(self.clock)
        return joined("from {0} until {1}", "von {0} bis {1}", *clocks)

    def from_until_date(self) -> Phrase:
        """Returns a stretch of days, e.g. "from ... until the third of March"."""
        dates = self._two_different(lambda: self.date(DATIVE, year=False))
        return joined("from {0} until {1}", "vom {0} bis zum {1}", *dates)

    def _two_different(self, make: Callable[[], Phrase]) -> tuple[Phrase, Phrase]:
        """Calls `make` until it has made two phrases that differ."""
        first = second = make()
        while second == first:
            second = make()
        return first, second

    def _choose_pair(
        self, pool: list[tuple[int, str]], nouns: Sequence[Noun], most: int
    ) -> tuple[int, str]:
        """Returns a random (number, noun) of a pool with one of these nouns.

        The number is at most `most`, if the pool has such a number.
        """
        names = {noun.en for noun in nouns}
        fitting = [pair for pair in pool if pair[1] in names]
        return self.rng.choice([pair for pair in fitting if pair[0] <= most] or fitting)

    def _adjective(self) -> Pair:
        """Returns an adjective, or more often none."""
        if self.rng.random() < _ADJECTIVE_SHARE:
            return self.rng.choice(ADJECTIVES)
        return Pair("", "")


def _day_parts(clock: Phrase) -> list[Pair]:
    """Returns the parts of the day in which a time can lie, possibly none."""
    hour = clock.values[0][1]
    return [part for part, hours in DAY_PARTS if hour in hours]


def _spaced(word: str) -> str:
    return f"{word} " if word else ""
