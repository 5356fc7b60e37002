"""The spellings in which people type a sentence: capitals, full stops, no hyphens."""

import random

SPELLINGS = {
    "plain": 0.56,
    "sentence": 0.18,  # An initial capital and a full stop.
    "capital": 0.06,
    "full stop": 0.04,
    "no hyphens": 0.07,
    "lower case": 0.04,
    "upper case": 0.05,
}
"""The share of each spelling among short inputs."""
_IN_LONG = ("plain", "sentence")


def choose_spelling(rng: random.Random, *, short: bool) -> str:
    """Returns one of `SPELLINGS`, each with the probability of its share.

    Long sentences are written carefully: they have two spellings only.
    """
    spellings = tuple(SPELLINGS) if short else _IN_LONG
    return rng.choices(spellings, [SPELLINGS[each] for each in spellings])[0]


def respell(en: str, de: str, spelling: str) -> tuple[str, str]:
    """Returns a sentence and its German in one of `SPELLINGS`.

    German follows English in an initial capital and a full stop. Where English is all
    in capitals, or has none, German keeps its own: they mark the nouns. English that
    begins with a capital in any case ("I") makes German begin with one only if there is
    a full stop, so that one spelling of English has one German.
    """
    match spelling:
        case "no hyphens":
            return en.replace("-", " "), de
        case "lower case":
            return en.lower(), de
        case "upper case":
            return en.upper(), de
    stop = "." if spelling in ("sentence", "full stop") else ""
    if spelling in ("sentence", "capital") and en[0].islower():
        en, de = _capitalised(en), _capitalised(de)
    elif stop and en[0].isupper():
        de = _capitalised(de)
    return en + stop, de + stop


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
