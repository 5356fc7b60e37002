"""Sentences of the five kinds, each around the values of its kind."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from t2t_repro.problems.translate_ende_numbers import clauses, lexicon
from t2t_repro.problems.translate_ende_numbers.clauses import VerbGroup
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)
from t2t_repro.problems.translate_ende_numbers.lexicon import Happening, Pair
from t2t_repro.problems.translate_ende_numbers.partition import Value, Values
from t2t_repro.problems.translate_ende_numbers.phrases import (
    Phrase,
    PhraseMaker,
    joined,
)
from t2t_repro.problems.translate_ende_numbers.short_sentences import ShortMaker
from t2t_repro.problems.translate_ende_numbers.spelling import choose_spelling, respell

KINDS = ("number", "ordinal", "date", "time", "price", "clause")
_SHORT_SHARE = 0.6
_COST = Happening("cost", "costs", "cost", "kosten", "kostet", "kostete")
_LAST = Happening("last", "lasts", "lasted", "dauern", "dauert", "dauerte")
_JUST = (Pair("already", "schon"), Pair("exactly", "genau"), Pair("almost", "fast"))
_NOWS = (Pair("today", "heute"), Pair("tomorrow", "morgen"))


@dataclass(frozen=True)
class Item:
    """A sentence pair, with what it is about."""

    kind: str  # One of `KINDS`.
    values: tuple[Value, ...]  # The composed values that it states, two at most.
    source: str  # English.
    target: str  # German.


class SentenceMaker:
    """Makes sentences from the values of one split."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        """Takes what makes every choice, and the values of a split."""
        self._rng = rng
        self._phrases = PhraseMaker(rng, values)
        self._short = ShortMaker(rng, values)
        # A maker named twice is chosen twice as often.
        self._makers: dict[str, tuple[Callable[[], Phrase], ...]] = {
            "number": (self._some_things, self._some_things, self._filled_container),
            "ordinal": (self._that_thing, self._place, self._between, self._quality),
            "date": (
                *(self._event_day, self._event_day, self._birth),
                *(self._meeting_day, self._stretch_of_days, self._calendar),
            ),
            "time": (
                *(self._event_time, self._departure, self._departure),
                *(self._meeting_time, self._stretch_of_time, self._clock_says),
                self._bare_time,
            ),
            "price": (self._trade, self._bargain, self._cost, self._payment),
        }

    def make(self, kind: str) -> Item:
        """Returns a random sentence of a kind, one of `KINDS`."""
        short = kind not in self._makers or self._rng.random() < _SHORT_SHARE
        if short:
            phrase = self._short.make(kind)
        else:
            phrase = self._rng.choice(self._makers[kind])()
        spelling = choose_spelling(self._rng, short=short)
        words = respell(clauses.finish(*phrase.pair), spelling)
        return Item(kind, phrase.values, *words)

    # Numbers

    def _some_things(self) -> Phrase:
        things = self._phrases.counted(lexicon.NOUNS, ACCUSATIVE)
        if self._rng.random() < 0.3:
            others = self._phrases.counted(lexicon.NOUNS, ACCUSATIVE)
            things = joined("{0} and {1}", "{0} und {1}", things, others)
        return self._somebody(lexicon.THING_VERBS, things)

    def _filled_container(self) -> Phrase:
        container = self._rng.choice(lexicon.CONTAINERS)
        things = self._phrases.counted(lexicon.SMALL_NOUNS, DATIVE)
        filled = joined(
            f"{container.en} with {{0}}", f"{container.de} mit {{0}}", things
        )
        return self._somebody(lexicon.THING_VERBS, filled)

    # Ordinals

    def _that_thing(self) -> Phrase:
        thing = self._phrases.numbered(lexicon.NOUNS, ACCUSATIVE)
        if self._rng.random() < 0.3:
            other = self._phrases.numbered(lexicon.NOUNS, ACCUSATIVE)
            thing = joined("{0} and {1}", "{0} und {1}", thing, other)
        return self._somebody(lexicon.THING_VERBS, thing)

    def _place(self) -> Phrase:
        where = self._rng.choice(lexicon.PREPOSITIONS)
        thing = self._phrases.numbered(lexicon.LARGE_NOUNS, DATIVE)
        place = joined(f"{where.en} {{0}}", f"{where.de} {{0}}", thing)
        return self._somebody(lexicon.POSITIONS, place)

    def _between(self) -> Phrase:
        things = [self._phrases.numbered(lexicon.LARGE_NOUNS, DATIVE) for _ in range(2)]
        place = joined("between {0} and {1}", "zwischen {0} und {1}", *things)
        return self._somebody(lexicon.POSITIONS, place)

    def _quality(self) -> Phrase:
        thing = self._phrases.numbered(lexicon.NOUNS, NOMINATIVE)
        verb = self._rng.choice(
            (VerbGroup("is", "ist", ""), VerbGroup("was", "war", ""))
        )
        quality = self._rng.choice(lexicon.ADJECTIVES)
        if self._rng.random() < 0.5:
            return _phrase(clauses.main_clause(thing.pair, verb, quality), thing)
        opening = self._rng.choice(lexicon.OPENINGS)
        return _phrase(clauses.that_clause(opening, thing.pair, verb, quality), thing)

    # Dates

    def _event_day(self) -> Phrase:
        event = self._rng.choice(lexicon.EVENTS)
        verb = self._rng.choice(lexicon.EVENT_HAPPENINGS)
        return self._occasion(event, verb, self._phrases.on_date())

    def _birth(self) -> Phrase:
        subject = self._rng.choice(lexicon.SUBJECTS)
        plural = subject.person == "p"
        verb = VerbGroup(
            "were born" if plural else "was born",
            "wurden" if plural else "wurde",
            "geboren",
        )
        who = Pair(subject.en, subject.de)
        when = joined("on {0}", "am {0}", self._phrases.date(DATIVE))
        order = self._rng.choice(("main", "that", "inverted"))
        if order == "that":
            opening = self._rng.choice(lexicon.OPENINGS)
            return _phrase(clauses.that_clause(opening, who, verb, when.pair), when)
        if order == "inverted":
            nothing = Pair("", "")
            return _phrase(clauses.inverted_clause(when.pair, who, verb, nothing), when)
        return _phrase(clauses.main_clause(who, verb, when.pair), when)

    def _meeting_day(self) -> Phrase:
        return self._meeting(self._phrases.on_date())

    def _stretch_of_days(self) -> Phrase:
        stretch = self._phrases.from_until_date()
        return self._during(stretch)

    def _calendar(self) -> Phrase:
        if self._rng.random() < 0.4:
            date = self._phrases.weekday_date(NOMINATIVE)
            is_now = VerbGroup("is", "ist", "")
            now = self._rng.choice(_NOWS)
            return _phrase(clauses.main_clause(now, is_now, date.pair), date)
        date = self._phrases.date(NOMINATIVE)
        adjective = self._rng.choice(lexicon.DAY_ADJECTIVES)
        en = f"{{0}} was a {adjective.en} day"
        return joined(en, f"der {{0}} war ein {adjective.de}er Tag", date)

    # Times

    def _event_time(self) -> Phrase:
        event = self._rng.choice(lexicon.EVENTS)
        verb = self._rng.choice(lexicon.EVENT_HAPPENINGS)
        return self._occasion(event, verb, self._phrases.at_time())

    def _departure(self) -> Phrase:
        event, verb = self._vehicle()
        return self._occasion(event, verb, self._phrases.at_time())

    def _meeting_time(self) -> Phrase:
        return self._meeting(self._phrases.at_time())

    def _stretch_of_time(self) -> Phrase:
        return self._during(self._phrases.from_until_time())

    def _clock_says(self) -> Phrase:
        just, clock = self._rng.choice(_JUST), self._phrases.clock()
        opening = joined(
            f"it was {just.en} {{0}} when", f"es war {just.de} {{0}}, als", clock
        )
        event, verb = self._vehicle()
        past, nothing = clauses.happen(verb, "past"), Pair("", "")
        return _phrase(clauses.that_clause(opening.pair, event, past, nothing), clock)

    def _bare_time(self) -> Phrase:
        date = self._phrases.date(DATIVE)
        return joined("{0} on {1}", "{0} am {1}", self._phrases.clock(), date)

    # Prices

    def _trade(self) -> Phrase:
        things = self._phrases.counted(lexicon.SMALL_NOUNS, ACCUSATIVE, few=True)
        deal = joined("{0} for {1}", "{0} für {1}", things, self._phrases.price())
        return self._somebody(lexicon.TRADE_VERBS, deal)

    def _bargain(self) -> Phrase:
        thing = self._phrases.described(ACCUSATIVE)
        price = self._phrases.price()
        deal = joined(f"{thing.en} for {{0}}", f"{thing.de} für {{0}}", price)
        return self._somebody(lexicon.TRADE_VERBS, deal)

    def _cost(self) -> Phrase:
        price = self._phrases.price()
        verb = clauses.happen(_COST, self._rng.choice(("present", "future")))
        thing = self._phrases.described(NOMINATIVE)
        if self._rng.random() < 0.5:
            return _phrase(clauses.main_clause(thing, verb, price.pair), price)
        opening = self._rng.choice(lexicon.OPENINGS)
        return _phrase(clauses.that_clause(opening, thing, verb, price.pair), price)

    def _payment(self) -> Phrase:
        thing = self._phrases.described(ACCUSATIVE)
        price = self._phrases.price()
        rest = joined(f"{{0}} for {thing.en}", f"{{0}} für {thing.de}", price)
        return self._somebody((lexicon.PAY,), rest)

    # Parts that several kinds share

    def _somebody(self, verbs: tuple[lexicon.Verb, ...], rest: Phrase) -> Phrase:
        """Returns a sentence in which somebody does one of some things."""
        subject, verb = self._rng.choice(lexicon.SUBJECTS), self._rng.choice(verbs)
        return _phrase(clauses.action(self._rng, subject, verb, rest.pair), rest)

    def _meeting(self, when: Phrase) -> Phrase:
        """Returns a sentence in which somebody meets, calls, ... somebody."""
        person = self._rng.choice(lexicon.PERSONS)
        rest = Pair(f"{person} {when.en}", f"{person} {when.de}")
        subject = self._rng.choice(lexicon.SUBJECTS)
        verb = self._rng.choice(lexicon.PERSON_VERBS)
        return _phrase(clauses.action(self._rng, subject, verb, rest, timed=True), when)

    def _during(self, stretch: Phrase) -> Phrase:
        """Returns a sentence about something that fills a stretch of time."""
        if self._rng.random() < 0.5:
            event = self._rng.choice(lexicon.EVENTS)
            return self._occasion(event, _LAST, stretch)
        subject = self._rng.choice(lexicon.SUBJECTS)
        verb = self._rng.choice(lexicon.ACTIVITIES)
        rest = stretch.pair
        return _phrase(
            clauses.action(self._rng, subject, verb, rest, timed=True), stretch
        )

    def _occasion(self, event: Pair, verb: Happening, when: Phrase) -> Phrase:
        """Returns a sentence in which something happens at a time."""
        return _phrase(clauses.occasion(self._rng, event, verb, when.pair), when)

    def _vehicle(self) -> tuple[Pair, Happening]:
        """Returns e.g. "the train to Hamburg" and that it leaves."""
        vehicle, city = (
            self._rng.choice(lexicon.VEHICLES),
            self._rng.choice(lexicon.CITIES),
        )
        if self._rng.random() < 0.5:
            to_city = Pair(f"{vehicle.en} to {city.en}", f"{vehicle.de} nach {city.de}")
            return to_city, lexicon.LEAVE
        from_city = Pair(f"{vehicle.en} from {city.en}", f"{vehicle.de} aus {city.de}")
        return from_city, lexicon.ARRIVE


def _phrase(words: Pair, *stated: Phrase) -> Phrase:
    """Returns words together with the values that their parts state."""
    return Phrase(*words, tuple(value for part in stated for value in part.values))
