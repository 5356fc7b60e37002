"""Generates phrases with values: counted things, numbered things, prices, times."""

import random
from collections.abc import Callable, Sequence

from t2t_repro.problems.translate_ende_numbers import english, german
from t2t_repro.problems.translate_ende_numbers.german import ACCUSATIVE, DATIVE
from t2t_repro.problems.translate_ende_numbers.lexicon import (
    ADJECTIVES,
    DAY_PARTS,
    NOUNS,
    WEEKDAYS,
    Noun,
)
from t2t_repro.problems.translate_ende_numbers.partition import Values
from t2t_repro.problems.translate_ende_numbers.phrase import (
    NOTHING,
    Phrase,
    Value,
    join_phrases,
    join_words,
)

_NOUN_OF = {noun.en: noun for noun in NOUNS}
_ADJECTIVE_PROBABILITY = 0.3
_SMALL_COUNT_PROBABILITY = 0.2
_SMALL_ORDINAL_PROBABILITY = 0.65
_SMALL_PRICE_PROBABILITY = 0.5
_YEAR_PROBABILITY = 0.5


def add_article(
    noun: Noun, adjective: Phrase, case: str, *, definite: bool = True
) -> Phrase:
    """Returns a noun phrase with article: "the old house" or "an old house"."""
    en = join_words(adjective.en, noun.en)
    if definite:
        article, decline = german.definite, german.decline_weak
        en = f"the {en}"
    else:
        article, decline = german.indefinite, german.decline_mixed
        en = f"{english.indefinite(en)} {en}"
    declined = adjective.de and decline(adjective.de, case, noun.gender)
    return Phrase(en, join_words(article(case, noun.gender), declined, noun.de))


class PhraseMaker:
    """Generator of phrases with the values of one split; `rng` makes all choices."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        self.rng = rng
        self._values = values
        self._round_prices = [price for price in values.prices if 0 in price]
        self._round_times = [time for time in values.times if time[1] % 15 == 0]

    def quantity(
        self, nouns: Sequence[Noun], case: str, *, few: bool = False
    ) -> Phrase:
        """Returns e.g. "four hundred red books", "vierhundert rote Bücher".

        Args:
            nouns: Nouns to choose from.
            case: German case.
            few: Whether to use only numbers below 100.
        """
        value: Value
        if few or self.rng.random() < _SMALL_COUNT_PROBABILITY:
            n, noun = self._choose_pair(self._values.counts, nouns)
            value = ("count", n, noun.en)
        else:
            pools = (self._values.hundreds, self._values.thousands)
            n, noun = self.rng.choice(self.rng.choice(pools)), self.rng.choice(nouns)
            value = ("number", n)
        adjective = self._adjective()
        # Without an article, the adjective has the strong ending: "rote Bücher".
        ending = "en" if case == DATIVE else "e"
        plural = noun.de_dative_plural if case == DATIVE else noun.de_plural
        declined = adjective.de and adjective.de + ending
        en = join_words(english.cardinal(n), adjective.en, noun.en_plural)
        return Phrase(en, join_words(german.cardinal(n), declined, plural), (value,))

    def ordinal_phrase(self, nouns: Sequence[Noun], case: str) -> Phrase:
        """Returns e.g. "the second old house", "dem zweiten alten Haus"."""
        if self.rng.random() < _SMALL_ORDINAL_PROBABILITY:
            n, noun = self._choose_pair(self._values.ordinals, nouns)
        else:
            n, noun = self.rng.choice(self._values.hundreds), self.rng.choice(nouns)
        adjective, gender = self._adjective(), noun.gender
        ordinal = german.decline_ordinal(n, case, gender)
        declined = adjective.de and german.decline_weak(adjective.de, case, gender)
        en = join_words("the", english.ordinal(n), adjective.en, noun.en)
        de = join_words(german.definite(case, gender), ordinal, declined, noun.de)
        return Phrase(en, de, (("ordinal", n, noun.en),))

    def noun_phrase(self, case: str) -> Phrase:
        """Returns a noun phrase without a value: "the old table", "den alten Tisch"."""
        noun, adjective = self.rng.choice(NOUNS), self.rng.choice(ADJECTIVES)
        return add_article(noun, adjective, case)

    def price(self, case: str = ACCUSATIVE, *, round_share: float = 0.0) -> Phrase:
        """Returns a price.

        Args:
            case: German case.
            round_share: Probability that a price below 100 euros is round: whole euros,
                or cents without euros.
        """
        if self.rng.random() < _SMALL_PRICE_PROBABILITY:
            is_round = self.rng.random() < round_share
            pool = self._round_prices if is_round else self._values.prices
            euros, cents = self.rng.choice(pool)
        else:
            euros = self.rng.choice(self._values.hundreds)
            cents = self.rng.choice((0, self.rng.randint(1, 99)))
        en, de = english.price(euros, cents), german.price(euros, cents, case)
        return Phrase(en, de, (("price", euros, cents),))

    def clock(self, *, round_share: float = 0.2) -> Phrase:
        """Returns a time without preposition.

        Args:
            round_share: Probability of choosing only among the quarter hours.
        """
        is_round = self.rng.random() < round_share
        pool = self._round_times if is_round else self._values.times
        hour, minute = self.rng.choice(pool)
        en, de = english.clock(hour, minute), german.clock(hour, minute)
        return Phrase(en, de, (("time", hour, minute),))

    def date(self, case: str, *, year: bool = True) -> Phrase:
        """Returns a date without a German article; with `year`, some dates have one."""
        day, month = self.rng.choice(self._values.days)
        value: Value = ("date", day, month)
        number = None
        if year and self.rng.random() < _YEAR_PROBABILITY:
            number = self.rng.choice(self._values.years)
            value = (*value, number)
        de = german.date(day, month, case, number)
        return Phrase(english.date(day, month, number), de, (value,))

    def weekday_date(self, case: str) -> Phrase:
        """Returns e.g. "Friday the third of March", "Freitag, dem dritten März,"."""
        weekday, date = self.rng.choice(WEEKDAYS), self.date(case, year=False)
        article = german.definite(case, "m")
        return join_phrases("{0} {1}", f"{{0}}, {article} {{1}},", weekday, date)

    def date_phrase(self) -> Phrase:
        """Returns a date with "on" or, less often, "before" or "after"."""
        kind = self.rng.choice(("on", "on", "on weekday", "on weekday", "around"))
        if kind == "on":
            return join_phrases("on {0}", "am {0}", self.date(DATIVE))
        if kind == "on weekday":
            return join_phrases("on {0}", "am {0}", self.weekday_date(DATIVE))
        patterns = (("before {0}", "vor dem {0}"), ("after {0}", "nach dem {0}"))
        return join_phrases(*self.rng.choice(patterns), self.date(DATIVE))

    def time_phrase(self) -> Phrase:
        """Returns a time with "at", often with a day, which comes first in German."""
        clock = self.clock()
        kind = self.rng.choice(("time", "part", "weekday", "date", "weekday date"))
        if kind == "date":
            day = self.date(DATIVE, year=False)
        elif kind == "weekday date":
            day = self.weekday_date(DATIVE)
        elif kind == "weekday":
            day = self.rng.choice(WEEKDAYS)
        else:
            hour = clock.values[0][1]
            parts = [part for part, hours in DAY_PARTS if hour in hours]
            if kind == "part" and parts:
                part = self.rng.choice(parts)
                return join_phrases("at {0} {1}", "{1} um {0}", clock, part)
            return join_phrases("at {0}", "um {0}", clock)
        return join_phrases("at {0} on {1}", "am {1} um {0}", clock, day)

    def time_period(self) -> Phrase:
        """Returns a period of hours, e.g. "from ... until half past four"."""
        clocks = self._two_different(self.clock)
        return join_phrases("from {0} until {1}", "von {0} bis {1}", *clocks)

    def date_period(self) -> Phrase:
        """Returns a period of days, e.g. "from ... until the third of March"."""
        dates = self._two_different(lambda: self.date(DATIVE, year=False))
        return join_phrases("from {0} until {1}", "vom {0} bis zum {1}", *dates)

    def _two_different(self, make: Callable[[], Phrase]) -> tuple[Phrase, Phrase]:
        """Calls `make` until it has returned two different phrases."""
        first = second = make()
        while second == first:
            second = make()
        return first, second

    def _choose_pair(
        self, pool: list[tuple[int, str]], nouns: Sequence[Noun]
    ) -> tuple[int, Noun]:
        """Returns a random number from the pool with one of the given nouns.

        Half of the choices are limited to numbers up to 12, if the pool has any.
        """
        most = self.rng.choice((12, 99))
        names = {noun.en for noun in nouns}
        fitting = [pair for pair in pool if pair[1] in names]
        small = [pair for pair in fitting if pair[0] <= most]
        n, name = self.rng.choice(small or fitting)
        return n, _NOUN_OF[name]

    def _adjective(self) -> Phrase:
        """Returns an adjective with `_ADJECTIVE_PROBABILITY`, else nothing."""
        if self.rng.random() < _ADJECTIVE_PROBABILITY:
            return self.rng.choice(ADJECTIVES)
        return NOTHING
