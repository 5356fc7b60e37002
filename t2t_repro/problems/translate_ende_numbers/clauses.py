"""Parallel clauses: who does what, with the German verb where it belongs.

English keeps subject, verb, rest. German puts the finite verb second in a main
clause, after whatever comes first, and last after "dass"; the rest of the verb
(infinitive, participle, separable particle) always closes the clause.

German phrases with an apposition ("am Freitag, dem dritten März,") arrive here
with their closing comma, which is wanted only if the clause goes on: `finish`
removes it at the end of a sentence.
"""

import random
from typing import NamedTuple

from t2t_repro.problems.translate_ende_numbers.lexicon import (
    FUTURE_ADVERBS,
    OPENINGS,
    PAST_ADVERBS,
    Happening,
    Pair,
    Subject,
    Verb,
)

_HAVE = {"1": "habe", "3": "hat", "p": "haben"}
_WILL = {"1": "werde", "3": "wird", "p": "werden"}
_WANT = {"1": "will", "3": "will", "p": "wollen"}


class VerbGroup(NamedTuple):
    """A verb in one tense and person."""

    en: str  # All of the English verb, e.g. "has picked up".
    finite: str  # The German finite verb, e.g. "hat" or "holte".
    closing: str  # What closes the German clause, e.g. "abgeholt" or "ab", or "".
    # `closing` is a particle, written together with a finite verb that follows it
    # ("dass er ... abholte").
    separable: bool = False


def finish(en: str, de: str) -> Pair:
    """Returns a whole sentence, without a comma left open at its end."""
    return Pair(en, de.removesuffix(","))


def conjugate(verb: Verb, person: str, tense: str) -> VerbGroup:
    """Returns a verb in a tense: "present", "past", "perfect", "future" or "want".

    "want" is the present of wanting to do it.
    """
    third = person == "3"
    if tense == "present":
        head, _, tail = verb.en.partition(" ")
        en = f"{head}s {tail}".strip() if third else verb.en
        forms = {"1": verb.de.removesuffix("n"), "3": verb.de_present, "p": verb.de}
        return VerbGroup(en, forms[person], verb.particle, bool(verb.particle))
    if tense == "perfect":
        en = f"{'has' if third else 'have'} {verb.en_participle}"
        return VerbGroup(en, _HAVE[person], verb.de_participle)
    infinitive = verb.particle + verb.de
    if tense == "future":
        return VerbGroup(f"will {verb.en}", _WILL[person], infinitive)
    if tense == "want":
        en = f"{'wants' if third else 'want'} to {verb.en}"
        return VerbGroup(en, _WANT[person], infinitive)
    finite = verb.de_past_plural if person == "p" else verb.de_past
    return VerbGroup(verb.en_past, finite, verb.particle, bool(verb.particle))


def happen(verb: Happening, tense: str) -> VerbGroup:
    """Returns what an occasion does, in the tense "present", "past" or "future"."""
    if tense == "future":
        return VerbGroup(f"will {verb.en}", "wird", verb.particle + verb.de)
    separable = bool(verb.particle)
    if tense == "past":
        return VerbGroup(verb.en_past, verb.de_past, verb.particle, separable)
    return VerbGroup(verb.en_present, verb.de_present, verb.particle, separable)


def main_clause(subject: Pair, verb: VerbGroup, rest: Pair) -> Pair:
    """Returns subject, finite verb, rest, closing."""
    de = (subject.de, verb.finite, rest.de, verb.closing)
    return finish(_words(subject.en, verb.en, rest.en), _words(*de))


def inverted_clause(first: Pair, subject: Pair, verb: VerbGroup, rest: Pair) -> Pair:
    """Returns a clause that opens with something else than its subject."""
    de = (first.de, verb.finite, subject.de, rest.de, verb.closing)
    return finish(_words(first.en, subject.en, verb.en, rest.en), _words(*de))


def that_clause(opening: Pair, subject: Pair, verb: VerbGroup, rest: Pair) -> Pair:
    """Returns a clause after a conjunction, with the German finite verb at its end."""
    end = f"{verb.closing}{'' if verb.separable else ' '}{verb.finite}".strip()
    de = (opening.de, subject.de, rest.de, end)
    return finish(_words(opening.en, subject.en, verb.en, rest.en), _words(*de))


def action(
    rng: random.Random, subject: Subject, verb: Verb, rest: Pair, *, timed: bool = False
) -> Pair:
    """Returns a sentence in which somebody does something.

    `rest` is objects and adverbials, in the order of each language. If `timed`, it says
    when, so no "yesterday" is added, nor a perfect, which English does not combine with
    a time.
    """
    tenses = ("past", "future", "want")
    tense = rng.choice(tenses if timed else (*tenses, "perfect"))
    who, group = Pair(subject.en, subject.de), conjugate(verb, subject.person, tense)
    order = rng.choice(("main", "that") if timed else ("main", "adverb", "that"))
    if order == "that":
        return that_clause(rng.choice(OPENINGS), who, group, rest)
    if order == "adverb" and tense == "past":
        return inverted_clause(rng.choice(PAST_ADVERBS), who, group, rest)
    if order == "adverb" and tense == "future":
        return inverted_clause(rng.choice(FUTURE_ADVERBS), who, group, rest)
    return main_clause(who, group, rest)


def occasion(rng: random.Random, event: Pair, verb: Happening, when: Pair) -> Pair:
    """Returns a sentence in which an event begins, ends, leaves, ... at a time.

    `rng` chooses tense and word order; `when` has its preposition.
    """
    group = happen(verb, rng.choice(("present", "past", "future")))
    order = rng.choice(("main", "main", "inverted", "that"))
    if order == "that":
        return that_clause(rng.choice(OPENINGS), event, group, when)
    if order == "inverted":
        return inverted_clause(when, event, group, Pair("", ""))
    return main_clause(event, group, when)


def _words(*pieces: str) -> str:
    """Joins pieces of a sentence by spaces, leaving out the empty ones."""
    return " ".join(piece for piece in pieces if piece)
