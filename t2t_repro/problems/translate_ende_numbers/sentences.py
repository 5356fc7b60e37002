"""Generates sentence pairs of each kind."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from t2t_repro.problems.translate_ende_numbers import clauses, lexicon
from t2t_repro.problems.translate_ende_numbers.clauses import VerbGroup
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)
from t2t_repro.problems.translate_ende_numbers.lexicon import VERBS, Verb
from t2t_repro.problems.translate_ende_numbers.partition import Values
from t2t_repro.problems.translate_ende_numbers.phrase import Phrase, Value, join_phrases
from t2t_repro.problems.translate_ende_numbers.phrases import PhraseMaker
from t2t_repro.problems.translate_ende_numbers.short_sentences import ShortMaker
from t2t_repro.problems.translate_ende_numbers.spelling import choose_spelling, respell

KINDS = ("number", "ordinal", "date", "time", "price", "clause")
_SHORT_PROBABILITY = 0.59


@dataclass(frozen=True)
class Item:
    """Sentence pair with its kind and values."""

    kind: str  # One of `KINDS`, or "word".
    values: tuple[Value, ...]  # Composed values in the sentence, at most two.
    source: str  # English.
    target: str  # German.


class SentenceMaker:
    """Generator of sentences with the values of one split; `rng` makes all choices."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        self._rng = rng
        self._phrases = phrases = PhraseMaker(rng, values)
        self._short = ShortMaker(rng, values)
        # Methods that are listed twice are chosen twice as often.
        self._makers: dict[str, list[Callable[[], Phrase]]] = {
            "number": [
                *[partial(self._things, phrases.quantity)] * 2,
                self._filled_container,
            ],
            "ordinal": [
                partial(self._things, phrases.ordinal_phrase),
                self._place,
                self._between,
                self._quality,
            ],
            "date": [
                *[partial(self._event, phrases.date_phrase)] * 2,
                self._birth,
                partial(self._meeting, phrases.date_phrase),
                partial(self._during, phrases.date_period),
                self._calendar,
            ],
            "time": [
                partial(self._event, phrases.time_phrase),
                *[self._departure] * 2,
                partial(self._meeting, phrases.time_phrase),
                partial(self._during, phrases.time_period),
                self._clock_says,
                self._bare_time,
            ],
            "price": [self._trade, self._bargain, self._cost, self._payment],
        }

    def make(self, kind: str) -> Item:
        """Returns a random sentence of a kind, one of `KINDS`."""
        short = kind not in self._makers or self._rng.random() < _SHORT_PROBABILITY
        if short:
            phrase = self._short.make(kind)
        else:
            phrase = self._rng.choice(self._makers[kind])()
        spelling = choose_spelling(self._rng, short=short)
        en, de, values = clauses.finish(phrase)
        return Item(kind, values, *respell(en, de, spelling))

    # Numbers and ordinals

    def _things(self, make: Callable[..., Phrase]) -> Phrase:
        """Returns a sentence about an action with counted or numbered things."""
        things = make(lexicon.NOUNS, ACCUSATIVE)
        if self._rng.random() < 0.3:
            others = make(lexicon.NOUNS, ACCUSATIVE)
            things = join_phrases("{0} and {1}", "{0} und {1}", things, others)
        return self._somebody(lexicon.THING_VERBS, things)

    def _filled_container(self) -> Phrase:
        container = self._rng.choice(lexicon.CONTAINERS)
        things = self._phrases.quantity(lexicon.SMALL_NOUNS, DATIVE)
        filled = join_phrases("{0} with {1}", "{0} mit {1}", container, things)
        return self._somebody(lexicon.THING_VERBS, filled)

    def _place(self) -> Phrase:
        where = self._rng.choice(lexicon.PREPOSITIONS)
        thing = self._phrases.ordinal_phrase(lexicon.LARGE_NOUNS, DATIVE)
        place = join_phrases("{0} {1}", "{0} {1}", where, thing)
        return self._somebody(lexicon.POSITIONS, place)

    def _between(self) -> Phrase:
        things = [
            self._phrases.ordinal_phrase(lexicon.LARGE_NOUNS, DATIVE) for _ in range(2)
        ]
        place = join_phrases("between {0} and {1}", "zwischen {0} und {1}", *things)
        return self._somebody(lexicon.POSITIONS, place)

    def _quality(self) -> Phrase:
        thing = self._phrases.ordinal_phrase(lexicon.NOUNS, NOMINATIVE)
        verb = clauses.be("3", self._rng.choice(("present", "past")))
        return self._statement(thing, verb, self._rng.choice(lexicon.ADJECTIVES))

    # Dates

    def _event(self, make_when: Callable[[], Phrase]) -> Phrase:
        """Returns a sentence in which an event happens on a day or at a time."""
        event = self._rng.choice(lexicon.EVENTS)
        verb = self._rng.choice(lexicon.EVENT_VERBS)
        return clauses.occasion(self._rng, event, verb, make_when())

    def _birth(self) -> Phrase:
        subject = self._rng.choice(lexicon.SUBJECTS)
        verb = clauses.conjugate(VERBS["bear"], subject.person, "passive")
        when = join_phrases("on {0}", "am {0}", self._phrases.date(DATIVE))
        order = self._rng.choice(("main", "that", "inverted"))
        return clauses.ordered_clause(self._rng, order, subject.phrase, verb, when)

    def _calendar(self) -> Phrase:
        if self._rng.random() < 0.4:
            date = self._phrases.weekday_date(NOMINATIVE)
            now = self._rng.choice(lexicon.NOWS)
            return join_phrases("{0} {1}", "{0} {1}", now, date)
        date = self._phrases.date(NOMINATIVE)
        adjective = self._rng.choice(lexicon.DAY_ADJECTIVES)
        en, de = "{0} was a {1} day", "der {0} war ein {1}er Tag"
        return join_phrases(en, de, date, adjective)

    # Times

    def _departure(self) -> Phrase:
        return clauses.occasion(
            self._rng, *self._vehicle(), self._phrases.time_phrase()
        )

    def _clock_says(self) -> Phrase:
        just, clock = self._rng.choice(lexicon.CLOCK_ADVERBS), self._phrases.clock()
        opening = join_phrases(
            "it was {0} {1} when", "es war {0} {1}, als", just, clock
        )
        event, verb = self._vehicle()
        return clauses.that_clause(opening, event, clauses.conjugate(verb, "3", "past"))

    def _bare_time(self) -> Phrase:
        date = self._phrases.date(DATIVE)
        return join_phrases("{0} on {1}", "{0} am {1}", self._phrases.clock(), date)

    # Prices

    def _trade(self) -> Phrase:
        things = self._phrases.quantity(lexicon.SMALL_NOUNS, ACCUSATIVE, few=True)
        deal = join_phrases("{0} for {1}", "{0} für {1}", things, self._phrases.price())
        return self._somebody(lexicon.TRADE_VERBS, deal)

    def _bargain(self) -> Phrase:
        thing = self._phrases.noun_phrase(ACCUSATIVE)
        deal = join_phrases("{0} for {1}", "{0} für {1}", thing, self._phrases.price())
        return self._somebody(lexicon.TRADE_VERBS, deal)

    def _cost(self) -> Phrase:
        price = self._phrases.price()
        tense = self._rng.choice(("present", "future"))
        verb = clauses.conjugate(VERBS["cost"], "3", tense)
        return self._statement(self._phrases.noun_phrase(NOMINATIVE), verb, price)

    def _payment(self) -> Phrase:
        thing = self._phrases.noun_phrase(ACCUSATIVE)
        paid = join_phrases("{1} for {0}", "{1} für {0}", thing, self._phrases.price())
        return self._somebody((VERBS["pay"],), paid)

    # Shared by several kinds

    def _statement(self, subject: Phrase, verb: VerbGroup, rest: Phrase) -> Phrase:
        """Returns a main clause or a "that" clause, with equal probability."""
        order = "main" if self._rng.random() < 0.5 else "that"
        return clauses.ordered_clause(self._rng, order, subject, verb, rest)

    def _somebody(
        self, verbs: tuple[Verb, ...], rest: Phrase, *, timed: bool = False
    ) -> Phrase:
        """Returns a sentence with a random subject and verb; see `clauses.action`."""
        subject, verb = self._rng.choice(lexicon.SUBJECTS), self._rng.choice(verbs)
        return clauses.action(self._rng, subject, verb, rest, timed=timed)

    def _meeting(self, make_when: Callable[[], Phrase]) -> Phrase:
        """Returns a sentence in which a person meets, calls, ... another person."""
        when, person = make_when(), self._rng.choice(lexicon.PERSONS)
        rest = join_phrases("{0} {1}", "{0} {1}", person, when)
        return self._somebody(lexicon.PERSON_VERBS, rest, timed=True)

    def _during(self, make_period: Callable[[], Phrase]) -> Phrase:
        """Returns a sentence about an event or activity during a period."""
        period = make_period()
        if self._rng.random() < 0.5:
            event = self._rng.choice(lexicon.EVENTS)
            return clauses.occasion(self._rng, event, VERBS["last"], period)
        return self._somebody(lexicon.ACTIVITIES, period, timed=True)

    def _vehicle(self) -> tuple[Phrase, Verb]:
        """Returns a vehicle and a verb, e.g. "the train to Hamburg" and "leave"."""
        where = self._rng.choice(lexicon.VEHICLES), self._rng.choice(lexicon.CITIES)
        if self._rng.random() < 0.5:
            return join_phrases("{0} to {1}", "{0} nach {1}", *where), VERBS["leave"]
        return join_phrases("{0} from {1}", "{0} aus {1}", *where), VERBS["arrive"]
