"""Generates short inputs like those that people type into a demo.

An input is a single value, a value after "at", "on" or "it is", or a clause of a few
words.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial

from t2t_repro.problems.translate_ende_numbers import clauses, english, german, lexicon
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)
from t2t_repro.problems.translate_ende_numbers.lexicon import (
    ADVERBS,
    NOUNS,
    VERBS,
    Verb,
)
from t2t_repro.problems.translate_ende_numbers.partition import Values, choose_split
from t2t_repro.problems.translate_ende_numbers.phrase import (
    NOTHING,
    Phrase,
    join_phrases,
    join_words,
)
from t2t_repro.problems.translate_ende_numbers.phrases import PhraseMaker, add_article

# Tenses that are listed twice are chosen twice as often.
_SIMPLE_TENSES = (*["present"] * 2, "past", "future")
_TENSES = (*_SIMPLE_TENSES, "past", "future", "want", "perfect")


class ShortMaker:
    """Generator of inputs with the values of one split; `rng` makes all choices."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        self._rng, self._choose = rng, rng.choice
        self._values = values
        self._phrases = phrases = PhraseMaker(rng, values)
        # Methods that are listed twice are chosen twice as often.
        self._makers: dict[str, list[Callable[[], Phrase]]] = {
            "number": [
                *[self._bare_number] * 3,
                *[self._things] * 4,
                *[self._things_and_others] * 2,
                *[lambda: self._action(self._things(ACCUSATIVE))] * 3,
            ],
            "ordinal": [*[self._numbered] * 2, self._quality_of_numbered],
            "date": [
                *[self._bare_date] * 2,
                phrases.date_phrase,
                self._calendar,
                lambda: self._happening(phrases.date_phrase()),
            ],
            "time": [
                *[self._clock] * 2,
                self._at_clock,
                self._it_is,
                phrases.time_period,
                lambda: self._happening(self._at_clock()),
            ],
            "price": [
                *[partial(phrases.price, NOMINATIVE, round_share=0.5)] * 3,
                self._it_costs,
            ],
            "clause": [
                self._quality,
                *[lambda: self._action(self._thing(ACCUSATIVE))] * 4,
                lambda: self._somebody(
                    lexicon.PERSON_VERBS, self._choose(lexicon.PERSONS)
                ),
                partial(self._somebody, lexicon.ACTIVITIES, NOTHING),
                partial(self._somebody, (VERBS["arrive"],), NOTHING, _TENSES[:-1]),
                self._position,
                *[self._event] * 2,
            ],
        }

    def make(self, kind: str) -> Phrase:
        """Returns a random short input of a kind, one of `sentences.KINDS`."""
        make = self._choose(self._makers[kind])
        phrase = make()
        # Phrases without values are assigned to splits by their words.
        while not phrase.values and choose_split(phrase.en) != self._values.split:
            phrase = make()
        return phrase

    # Numbers

    def _bare_number(self) -> Phrase:
        pool = self._choose((self._values.hundreds, self._values.thousands))
        n = self._choose(pool)
        return Phrase(english.cardinal(n), german.cardinal(n), (("number", n),))

    def _things(self, case: str = NOMINATIVE) -> Phrase:
        return self._phrases.quantity(NOUNS, case, few=self._rng.random() < 0.7)

    def _things_and_others(self) -> Phrase:
        pair = (self._phrases.quantity(NOUNS, NOMINATIVE, few=True) for _ in range(2))
        return join_phrases("{0} and {1}", "{0} und {1}", *pair)

    # Ordinals

    def _numbered(self) -> Phrase:
        return self._phrases.ordinal_phrase(NOUNS, NOMINATIVE)

    def _quality_of_numbered(self) -> Phrase:
        return self._being(self._numbered(), "3", self._choose(lexicon.ADJECTIVES))

    # Dates

    def _bare_date(self) -> Phrase:
        return join_phrases("{0}", "der {0}", self._phrases.date(NOMINATIVE))

    def _calendar(self) -> Phrase:
        """Returns e.g. "today is the third of March", "heute ist der dritte März"."""
        now = self._choose(lexicon.NOWS)
        return join_phrases("{0} {1}", "{0} {1}", now, self._bare_date())

    # Times

    def _clock(self) -> Phrase:
        """Returns a time, sometimes in the short form without "a" or "minutes"."""
        clock = self._phrases.clock(round_share=0.6)
        minute = clock.values[0][2]
        assert isinstance(minute, int)
        if minute % 5 or self._rng.random() < 0.5:
            return clock
        en = clock.en.removeprefix("a ").replace(" minutes", "")
        return clock._replace(en=en, de=clock.de.replace(" Minuten", ""))

    def _at_clock(self) -> Phrase:
        return join_phrases("at {0}", "um {0}", self._clock())

    def _it_is(self) -> Phrase:
        return self._being(Phrase("it", "es"), "3", self._clock())

    # Prices

    def _it_costs(self) -> Phrase:
        price = self._phrases.price(round_share=0.5)
        thing = self._choose((Phrase("it", "es"), self._thing(NOMINATIVE)))
        costs = clauses.conjugate(VERBS["cost"], "3", "present")
        return clauses.main_clause(thing, costs, price)

    # Clauses without a value

    def _quality(self) -> Phrase:
        thing, adjective = self._thing(NOMINATIVE), self._choose(lexicon.ADJECTIVES)
        subject = self._choose(lexicon.SUBJECTS)
        who, person = self._choose((subject, (thing, "3"), (thing, "3")))
        return self._being(who, person, adjective)

    def _position(self) -> Phrase:
        where, thing = self._choose(lexicon.PREPOSITIONS), self._thing(DATIVE)
        return self._somebody(
            lexicon.POSITIONS, join_phrases("{0} {1}", "{0} {1}", where, thing)
        )

    def _event(self) -> Phrase:
        on_day = join_phrases("on {0}", "am {0}", self._choose(lexicon.WEEKDAYS))
        return self._happening(self._choose((NOTHING, on_day)))

    # Shared by several kinds

    def _being(self, subject: Phrase, person: str, rest: Phrase) -> Phrase:
        """Returns a main clause with "is", "was" or the forms of another person."""
        verb = clauses.be(person, self._choose(("present", "past")))
        return clauses.main_clause(subject, verb, rest)

    def _action(self, things: Phrase) -> Phrase:
        """Returns a main clause in which somebody buys, sees, has, ... things."""
        actions = lexicon.THING_VERBS, _TENSES
        states = lexicon.STATE_VERBS, _SIMPLE_TENSES
        verbs, tenses = self._choose((actions, actions, states))
        return self._somebody(verbs, things, tenses)

    def _somebody(
        self, verbs: tuple[Verb, ...], rest: Phrase, tenses: Sequence[str] = _TENSES
    ) -> Phrase:
        """Returns a main clause in a random tense, possibly with an adverb of time."""
        subject, verb = self._choose(lexicon.SUBJECTS), self._choose(verbs)
        if verb.en == verb.en_past and subject.person != "3":
            # "I read" is ambiguous: omit the present tense.
            tenses = [tense for tense in tenses if tense != "present"]
        tense = self._choose(tenses)
        who, group = subject.phrase, clauses.conjugate(verb, subject.person, tense)
        order = self._choose(("none", "none", "first", "last"))
        if order == "none" or tense not in ADVERBS:
            return clauses.main_clause(who, group, rest)
        adverb = self._choose(ADVERBS[tense])
        if order == "first":
            return clauses.inverted_clause(adverb, who, group, rest)
        en, de = join_words(rest.en, adverb.en), join_words(adverb.de, rest.de)
        return clauses.main_clause(who, group, Phrase(en, de, rest.values))

    def _happening(self, when: Phrase) -> Phrase:
        """Returns a clause about an event, or the departure or arrival of a vehicle."""
        verbs = lexicon.DATED_EVENT_VERBS if when.en else lexicon.EVENT_VERBS
        moves = VERBS["leave"], VERBS["arrive"]
        events = (
            (self._choose(lexicon.EVENTS), self._choose(verbs)),
            (self._choose(lexicon.VEHICLES), self._choose(moves)),
        )
        event, verb = self._choose(events)
        group = clauses.conjugate(verb, "3", self._choose(_SIMPLE_TENSES))
        return clauses.main_clause(event, group, when)

    def _thing(self, case: str) -> Phrase:
        """Returns a noun phrase such as "the house" or "an old house" in a case."""
        noun, definite = self._choose(NOUNS), self._rng.random() < 0.6
        adjective = self._choose((NOTHING, self._choose(lexicon.ADJECTIVES)))
        return add_article(noun, adjective, case, definite=definite)
