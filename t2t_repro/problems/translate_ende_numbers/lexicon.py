"""The closed vocabulary around the values, read from `lexicon.yaml`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from t2t_repro.problems.translate_ende_numbers import english, german
from t2t_repro.problems.translate_ende_numbers.phrase import Phrase


class Noun(NamedTuple):
    """A thing that can be counted."""

    en: str  # English singular.
    en_plural: str  # English plural.
    gender: str  # German gender, "m", "f" or "n".
    de: str  # German singular; the same in all the cases used here.
    de_plural: str  # German plural, nominative and accusative.
    de_dative_plural: str  # German plural, dative.


class Subject(NamedTuple):
    """A subject: its words, and "1" (I), "3" (he, she) or "p" (plural) for the verb."""

    en: str
    de: str
    person: str

    @property
    def phrase(self) -> Phrase:
        """The words."""
        return Phrase(self.en, self.de)


class Verb(NamedTuple):
    """A verb in the forms that the sentences use."""

    en: str  # English infinitive.
    en_past: str  # English past tense.
    en_participle: str  # English past participle.
    de: str  # German infinitive without its separable particle.
    de_past: str  # German past tense, third person singular, without particle.
    de_past_plural: str  # The same in the plural.
    de_present: str  # German present tense, third person singular, without particle.
    de_participle: str  # German past participle, particle included.
    particle: str = ""  # The separable particle ("ab" of "abholen"), or "".


class Happening(NamedTuple):
    """What an occasion does, third person singular."""

    en: str  # English infinitive.
    en_present: str  # English present tense.
    en_past: str  # English past tense.
    de: str  # German infinitive without its separable particle.
    de_present: str  # German present tense without particle.
    de_past: str  # German past tense without particle.
    particle: str = ""  # The separable particle ("statt" of "stattfinden"), or "".


_FILE = Path(__file__).with_name("lexicon.yaml")
_TABLES: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
_VERBS = {row[0]: Verb(*row) for row in _TABLES["verbs"]}
HAPPENINGS = {row[0]: Happening(*row) for row in _TABLES["happenings"]}


def _phrases(table: str) -> tuple[Phrase, ...]:
    return tuple(Phrase(en, de) for en, de in _TABLES[table].items())


def _verbs(names: Iterable[str]) -> tuple[Verb, ...]:
    return tuple(_VERBS[name] for name in names)


SMALL_NOUNS = tuple(Noun(*row) for row in _TABLES["small_nouns"])
LARGE_NOUNS = tuple(Noun(*row) for row in _TABLES["large_nouns"])
NOUNS = SMALL_NOUNS + LARGE_NOUNS
CONTAINERS = _phrases("containers")
SUBJECTS = tuple(Subject(*row) for row in _TABLES["subjects"])
PERSONS = tuple(Phrase(name, name) for name in _TABLES["persons"])

THING_VERBS = _verbs(_TABLES["thing_verbs"])
TRADE_VERBS = _verbs(_TABLES["trade_verbs"])
PERSON_VERBS = _verbs(_TABLES["person_verbs"])
ACTIVITIES = _verbs(_TABLES["activities"])
POSITIONS = _verbs(_TABLES["positions"])
PAY, ARRIVE_THERE = _verbs(("pay", "arrive"))

PREPOSITIONS = _phrases("prepositions")
ADJECTIVES = _phrases("adjectives")
DAY_ADJECTIVES = _phrases("day_adjectives")
PAST_ADVERBS = _phrases("past_adverbs")
FUTURE_ADVERBS = _phrases("future_adverbs")
TIME_ADVERBS = (Phrase("today", "heute"), *PAST_ADVERBS, *FUTURE_ADVERBS)
OPENINGS = _phrases("openings")

EVENTS = _phrases("events")
VEHICLES = _phrases("vehicles")
EVENT_HAPPENINGS = tuple(HAPPENINGS[name] for name in _TABLES["event_happenings"])
CITIES = _phrases("cities")
WEEKDAYS = tuple(map(Phrase, english.WEEKDAYS, german.WEEKDAYS))
# A part of the day, and the hours at which German says so.
DAY_PARTS = tuple(
    (Phrase(en, de), range(first, last + 1))
    for en, de, first, last in _TABLES["day_parts"]
)
