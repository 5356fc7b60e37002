"""Short inputs, as a visitor types them: a value by itself, a clause of a few words.

A value here stands alone or after "at", "on" or "it is"; things and people do
something without a city, a day or a price.
"""

import random
from collections.abc import Callable
from typing import TypeVar

from t2t_repro.problems.translate_ende_numbers import clauses, english, german, lexicon
from t2t_repro.problems.translate_ende_numbers.clauses import VerbGroup
from t2t_repro.problems.translate_ende_numbers.german import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
)
from t2t_repro.problems.translate_ende_numbers.lexicon import NOUNS, Pair
from t2t_repro.problems.translate_ende_numbers.partition import Values, split_of
from t2t_repro.problems.translate_ende_numbers.phrases import (
    Phrase,
    PhraseMaker,
    joined,
)

_Choice = TypeVar("_Choice")
_NOTHING = Pair("", "")
# "to be" for one person or thing and for several, in the present and the past.
_BE = {
    "1": (VerbGroup("am", "bin", ""), VerbGroup("was", "war", "")),
    "3": (VerbGroup("is", "ist", ""), VerbGroup("was", "war", "")),
    "p": (VerbGroup("are", "sind", ""), VerbGroup("were", "waren", "")),
}
_TENSES: tuple[str, ...] = (
    "present",
    "past",
    "past",
    "future",
    "future",
    "want",
    "perfect",
)


class ShortMaker:
    """Makes short inputs from the values of one split."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        """Takes the source of every choice, and the values of a split."""
        self._rng = rng
        self._values = values
        self._phrases = PhraseMaker(rng, values)
        # A maker named twice is chosen twice as often.
        self._makers: dict[str, tuple[Callable[[], Phrase], ...]] = {
            "number": (
                *(self._bare_number, self._bare_number, self._bare_number),
                *(self._things, self._things, self._things, self._things),
                *(self._things_and_others, self._things_and_others),
                self._counting_clause,
            ),
            "ordinal": (self._numbered, self._numbered, self._quality_of_numbered),
            "date": (self._bare_date, self._bare_date, self._phrases.on_date),
            "time": (
                *(self._clock, self._clock, self._at_clock, self._it_is),
                *(self._phrases.from_until_time, self._event_time),
            ),
            "price": (self._price, self._price, self._price, self._it_costs),
            "clause": (
                *(self._quality, self._action, self._action, self._action),
                *(self._meeting, self._activity, self._activity, self._position),
                self._event,
            ),
        }

    def make(self, kind: str) -> Phrase:
        """Returns a random short input of a kind, one of `sentences.KINDS`."""
        return self._rng.choice(self._makers[kind])()

    # Numbers

    def _bare_number(self) -> Phrase:
        n = self._rng.choice(
            self._rng.choice((self._values.hundreds, self._values.thousands))
        )
        return Phrase(english.cardinal(n), german.cardinal(n), (("number", n),))

    def _things(self) -> Phrase:
        return self._phrases.counted(NOUNS, NOMINATIVE, few=self._rng.random() < 0.7)

    def _things_and_others(self) -> Phrase:
        pair = (self._phrases.counted(NOUNS, NOMINATIVE, few=True) for _ in range(2))
        return joined("{0} and {1}", "{0} und {1}", *pair)

    def _counting_clause(self) -> Phrase:
        things = self._phrases.counted(NOUNS, ACCUSATIVE, few=True)
        return Phrase(*self._somebody(lexicon.THING_VERBS, things.pair), things.values)

    # Ordinals

    def _numbered(self) -> Phrase:
        return self._phrases.numbered(NOUNS, NOMINATIVE)

    def _quality_of_numbered(self) -> Phrase:
        thing = self._numbered()
        quality = clauses.main_clause(
            thing.pair, self._choose(*_BE["3"]), self._choose(*lexicon.ADJECTIVES)
        )
        return Phrase(*quality, thing.values)

    # Dates

    def _bare_date(self) -> Phrase:
        return joined("{0}", "der {0}", self._phrases.date(NOMINATIVE))

    # Times

    def _clock(self) -> Phrase:
        """Returns a time, at times without "a" or "minutes", as people say it."""
        clock = self._phrases.clock(round_share=0.6)
        minute = clock.values[0][2]
        assert isinstance(minute, int)
        if minute % 5 or self._rng.random() < 0.5:
            return clock
        en = clock.en.removeprefix("a ").replace(" minutes", "")
        return Phrase(en, clock.de.replace(" Minuten", ""), clock.values)

    def _at_clock(self) -> Phrase:
        return joined("at {0}", "um {0}", self._clock())

    def _it_is(self) -> Phrase:
        is_now = self._choose(*_BE["3"])
        return joined(
            f"it {is_now.en} {{0}}", f"es {is_now.finite} {{0}}", self._clock()
        )

    def _event_time(self) -> Phrase:
        clock = self._at_clock()
        return Phrase(*self._happening(clock.pair), clock.values)

    # Prices

    def _price(self) -> Phrase:
        return self._phrases.price(NOMINATIVE, round_share=0.5)

    def _it_costs(self) -> Phrase:
        price = self._phrases.price(round_share=0.5)
        thing = self._choose(Pair("it", "es"), self._thing(NOMINATIVE))
        return joined(f"{thing.en} costs {{0}}", f"{thing.de} kostet {{0}}", price)

    # Clauses without a value

    def _quality(self) -> Phrase:
        def quality() -> Pair:
            thing, adjective = (
                self._thing(NOMINATIVE),
                self._choose(*lexicon.ADJECTIVES),
            )
            subject = self._choose(*lexicon.SUBJECTS)
            people = Pair(subject.en, subject.de), subject.person
            who, person = self._choose(people, (thing, "3"), (thing, "3"))
            return clauses.main_clause(who, self._choose(*_BE[person]), adjective)

        return self._of_split(quality)

    def _action(self) -> Phrase:
        return self._of_split(
            lambda: self._somebody(lexicon.THING_VERBS, self._thing(ACCUSATIVE))
        )

    def _meeting(self) -> Phrase:
        def meeting() -> Pair:
            person = self._choose(*lexicon.PERSONS)
            return self._somebody(lexicon.PERSON_VERBS, Pair(person, person))

        return self._of_split(meeting)

    def _activity(self) -> Phrase:
        verbs = (*lexicon.ACTIVITIES, lexicon.ARRIVE_THERE, lexicon.ARRIVE_THERE)
        return self._of_split(lambda: self._somebody(verbs, _NOTHING))

    def _position(self) -> Phrase:
        def position() -> Pair:
            where, thing = self._choose(*lexicon.PREPOSITIONS), self._thing(DATIVE)
            rest = Pair(f"{where.en} {thing.en}", f"{where.de} {thing.de}")
            return self._somebody(lexicon.POSITIONS, rest)

        return self._of_split(position)

    def _event(self) -> Phrase:
        def event() -> Pair:
            day = self._choose(*lexicon.WEEKDAYS)
            on_day = Pair(f"on {day.en}", f"am {day.de}")
            return self._happening(self._choose(_NOTHING, on_day))

        return self._of_split(event)

    # Parts that several kinds share

    def _somebody(self, verbs: tuple[lexicon.Verb, ...], rest: Pair) -> Pair:
        """Returns a main clause, perhaps with an adverb of time, in any tense."""
        subject, verb = self._choose(*lexicon.SUBJECTS), self._choose(*verbs)
        tenses = _TENSES[:-1] if verb is lexicon.ARRIVE_THERE else _TENSES
        if verb.en == verb.en_past and subject.person != "3":
            tenses = tenses[1:]  # "I read" is present or past: only the past is used.
        tense = self._choose(*tenses)
        who, group = Pair(*subject[:2]), clauses.conjugate(verb, subject.person, tense)
        adverbs = {"past": lexicon.PAST_ADVERBS, "future": lexicon.FUTURE_ADVERBS}
        order = self._choose("none", "none", "first", "last")
        if order == "none" or tense not in adverbs:
            return clauses.main_clause(who, group, rest)
        adverb = self._choose(*adverbs[tense])
        if order == "first":
            return clauses.inverted_clause(adverb, who, group, rest)
        words = (f"{rest.en} {adverb.en}".strip(), f"{adverb.de} {rest.de}".strip())
        return clauses.main_clause(who, group, Pair(*words))

    def _happening(self, when: Pair) -> Pair:
        """Returns a clause in which an event or a vehicle does what it does."""
        events = (
            (self._choose(*lexicon.EVENTS), self._choose(*lexicon.EVENT_HAPPENINGS)),
            (
                self._choose(*lexicon.VEHICLES),
                self._choose(lexicon.LEAVE, lexicon.ARRIVE),
            ),
        )
        event, verb = self._choose(*events)
        tense = self._choose("present", "past", "future")
        return clauses.main_clause(event, clauses.happen(verb, tense), when)

    def _thing(self, case: str) -> Pair:
        """Returns a thing, "the house" or "an old house", in a German case."""
        noun, definite = self._choose(*NOUNS), self._rng.random() < 0.6
        adjective = self._choose(Pair("", ""), self._choose(*lexicon.ADJECTIVES))
        en = f"{adjective.en} {noun.en}".strip()
        if definite:
            article = german.definite(case, noun.gender)
            ending = german.after_definite
            en = f"the {en}"
        else:
            article = german.indefinite(case, noun.gender)
            ending = german.after_indefinite
            en = f"{english.indefinite(en)} {en}"
        declined = ending(adjective.de, case, noun.gender) if adjective.de else ""
        return Pair(en, " ".join(filter(None, (article, declined, noun.de))))

    def _of_split(self, make: Callable[[], Pair]) -> Phrase:
        """Calls `make` until it returns a sentence that belongs to this split."""
        while True:
            pair = make()
            if split_of(pair.en) == self._values.split:
                return Phrase(*pair, ())

    def _choose(self, *choices: _Choice) -> _Choice:
        return self._rng.choice(choices)
