"""Builds parallel clauses with English and German word order.

An English clause consists of subject, verb and rest. In a German main clause, the
finite verb comes second, and the rest of the verb (infinitive, participle or separable
particle) comes last. After "dass", the finite verb also moves to the end.

German phrases with an apposition ("am Freitag, dem dritten März,") end in a comma.
`finish` removes it at the end of a sentence.
"""

import random
from typing import NamedTuple

from t2t_repro.problems.translate_ende_numbers.lexicon import (
    ADVERBS,
    OPENINGS,
    TABLES,
    Subject,
    Verb,
)
from t2t_repro.problems.translate_ende_numbers.phrase import NOTHING, Phrase, join_words


class VerbGroup(NamedTuple):
    """Verb in one tense and person."""

    en: str  # Complete English verb, e.g. "has picked up".
    finite: str  # German finite verb, e.g. "hat" or "holte".
    closing: str  # End of the German clause, e.g. "abgeholt" or "ab"; may be empty.
    # Whether `closing` is a particle, which is joined to a finite verb that follows it
    # ("dass er ... abholte").
    separable: bool = False


def finish(phrase: Phrase) -> Phrase:
    """Removes the German comma at the end of a sentence."""
    return phrase._replace(de=phrase.de.removesuffix(","))


def conjugate(verb: Verb, person: str, tense: str) -> VerbGroup:
    """Conjugates a verb.

    Args:
        verb: Verb to conjugate.
        person: Person of the subject; see `Subject`.
        tense: "present", "past", "perfect", "future", "passive" (in the past), or
            "want" ("wants to buy").
    """
    if tense == "present":
        en = verb.en_present if person == "3" else verb.en
        forms = {"1": verb.de.removesuffix("n"), "3": verb.de_present, "p": verb.de}
        return VerbGroup(en, forms[person], verb.particle, bool(verb.particle))
    if tense == "past":
        finite = verb.de_past_plural if person == "p" else verb.de_past
        return VerbGroup(verb.en_past, finite, verb.particle, bool(verb.particle))
    auxiliary, finite = TABLES["auxiliaries"][tense][person]
    en, closing = verb.en, verb.particle + verb.de
    if tense in ("perfect", "passive"):
        en, closing = verb.en_participle, verb.de_participle
    return VerbGroup(f"{auxiliary} {en}", finite, closing)


def be(person: str, tense: str) -> VerbGroup:
    """Conjugates "to be" in the present or past tense; see `conjugate`."""
    en, finite = TABLES["be"][tense][person]
    return VerbGroup(en, finite, "")


def main_clause(subject: Phrase, verb: VerbGroup, rest: Phrase) -> Phrase:
    """Returns a main clause; German order: subject, finite verb, rest, closing."""
    de = (subject.de, verb.finite, rest.de, verb.closing)
    return _clause((subject, verb, rest), de)


def inverted_clause(
    first: Phrase, subject: Phrase, verb: VerbGroup, rest: Phrase = NOTHING
) -> Phrase:
    """Returns a main clause with `first` in front; German inverts subject and verb."""
    de = (first.de, verb.finite, subject.de, rest.de, verb.closing)
    return _clause((first, subject, verb, rest), de)


def that_clause(
    opening: Phrase, subject: Phrase, verb: VerbGroup, rest: Phrase = NOTHING
) -> Phrase:
    """Returns a subordinate clause, with the German finite verb at its end."""
    end = f"{verb.closing}{'' if verb.separable else ' '}{verb.finite}".strip()
    de = (opening.de, subject.de, rest.de, end)
    return _clause((opening, subject, verb, rest), de)


def ordered_clause(
    rng: random.Random, order: str, subject: Phrase, verb: VerbGroup, rest: Phrase
) -> Phrase:
    """Returns a clause in one of several word orders.

    Args:
        rng: Random generator.
        order: "main", "that" (subordinate clause) or "inverted" (`rest` in front).
        subject: Subject of the clause.
        verb: Conjugated verb.
        rest: Objects and adverbials.
    """
    if order == "that":
        return that_clause(rng.choice(OPENINGS), subject, verb, rest)
    if order == "inverted":
        return inverted_clause(rest, subject, verb)
    return main_clause(subject, verb, rest)


def action(
    rng: random.Random,
    subject: Subject,
    verb: Verb,
    rest: Phrase,
    *,
    timed: bool = False,
) -> Phrase:
    """Returns a sentence about an action, in a random tense and word order.

    Args:
        rng: Random generator.
        subject: Subject of the sentence.
        verb: Verb to conjugate.
        rest: Objects and adverbials, in the order of each language.
        timed: Whether `rest` contains a time. If so, no adverb of time is added, and
            the perfect tense, which English does not combine with times, is not used.
    """
    tenses = ("past", "future", "want")
    tense = rng.choice(tenses if timed else ("present", *tenses, "perfect"))
    who, group = subject.phrase, conjugate(verb, subject.person, tense)
    order = rng.choice(("main", "that") if timed else ("main", "adverb", "that"))
    if order == "adverb" and tense in ADVERBS:
        return inverted_clause(rng.choice(ADVERBS[tense]), who, group, rest)
    return ordered_clause(rng, order, who, group, rest)


def occasion(rng: random.Random, event: Phrase, verb: Verb, when: Phrase) -> Phrase:
    """Returns a sentence about an event at a time, in a random tense and word order.

    Args:
        rng: Random generator.
        event: Subject of the sentence.
        verb: Verb such as "begin" or "leave".
        when: Time with its preposition.
    """
    group = conjugate(verb, "3", rng.choice(("present", "past", "future")))
    order = rng.choice(("main", "main", "inverted", "that"))
    return ordered_clause(rng, order, event, group, when)


def _clause(en: tuple[Phrase | VerbGroup, ...], de: tuple[str, ...]) -> Phrase:
    """Joins the English and German parts of a clause, and collects their values."""
    values = (value for part in en if isinstance(part, Phrase) for value in part.values)
    return finish(
        Phrase(join_words(*(p.en for p in en)), join_words(*de), tuple(values))
    )
