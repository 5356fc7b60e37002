"""Loads the corpus's vocabulary, apart from its values, from `lexicon.yaml`."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from t2t_repro.problems.translate_ende_numbers.phrase import Phrase


class Noun(NamedTuple):
    """Countable noun."""

    en: str  # English singular.
    en_plural: str  # English plural.
    gender: str  # German gender, "m", "f" or "n".
    de: str  # German singular; equal in all cases that occur.
    de_plural: str  # German plural, nominative and accusative.
    de_dative_plural: str  # German plural, dative.


class Subject(NamedTuple):
    """Subject, with the verb's person: "1" (I), "3" (he, she) or "p" (plural)."""

    phrase: Phrase
    person: str


class Verb(NamedTuple):
    """Verb with the forms that occur in the sentences."""

    en: str  # English infinitive.
    en_present: str  # English present tense, third person singular.
    en_past: str  # English past tense.
    en_participle: str  # English past participle.
    de: str  # German infinitive without its separable particle.
    de_past: str  # German past tense, third person singular, without particle.
    de_past_plural: str  # German past tense, plural, without particle.
    de_present: str  # German present tense, third person singular, without particle.
    de_participle: str  # German past participle, particle included.
    particle: str = ""  # Separable particle ("ab" of "abholen"); may be empty.


_FILE = Path(__file__).with_name("lexicon.yaml")
TABLES: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
VERBS = {row[0]: Verb(*row) for row in TABLES["verbs"]}


def _phrases(table: str) -> tuple[Phrase, ...]:
    return tuple(Phrase(en, de) for en, de in TABLES[table].items())


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(VERBS[name] for name in TABLES[table])


SMALL_NOUNS = tuple(Noun(*row) for row in TABLES["small_nouns"])
LARGE_NOUNS = tuple(Noun(*row) for row in TABLES["large_nouns"])
NOUNS = SMALL_NOUNS + LARGE_NOUNS
CONTAINERS = _phrases("containers")
SUBJECTS = tuple(
    Subject(Phrase(en, de), person) for en, de, person in TABLES["subjects"]
)
PERSONS = tuple(Phrase(name, name) for name in TABLES["persons"])

THING_VERBS = _verbs("thing_verbs")
STATE_VERBS = _verbs("state_verbs")
TRADE_VERBS = _verbs("trade_verbs")
PERSON_VERBS = _verbs("person_verbs")
ACTIVITIES = _verbs("activities")
POSITIONS = _verbs("positions")

PREPOSITIONS = _phrases("prepositions")
ADJECTIVES = _phrases("adjectives")
DAY_ADJECTIVES = _phrases("day_adjectives")
ADVERBS = {tense: _phrases(f"{tense}_adverbs") for tense in ("past", "future")}
"""Adverbs of time for each tense of the verb."""
TIME_ADVERBS = (Phrase("today", "heute"), *ADVERBS["past"], *ADVERBS["future"])
OPENINGS = _phrases("openings")

EVENTS = _phrases("events")
VEHICLES = _phrases("vehicles")
EVENT_VERBS = _verbs("event_verbs")
DATED_EVENT_VERBS = _verbs("dated_event_verbs")
CITIES = _phrases("cities")
NOWS = _phrases("nows")
CLOCK_ADVERBS = _phrases("clock_adverbs")
WEEKDAYS = _phrases("weekdays")
MONTHS = _phrases("months")
# Parts of the day, and the range of hours of each.
DAY_PARTS = tuple(
    (Phrase(en, de), range(first, last + 1))
    for en, de, first, last in TABLES["day_parts"]
)
