"""Varies the spelling of sentences: capitals, full stops and hyphens."""

import random
import re

SPELLINGS = {
    "plain": 0.49,
    "sentence": 0.18,  # Initial capital and full stop.
    "capital": 0.06,
    "title case": 0.03,
    "full stop": 0.04,
    "no hyphens": 0.07,
    "lower case": 0.04,
    "upper case": 0.09,
}
"""Probability of each spelling of short inputs."""
_IN_LONG = ("plain", "sentence")


def choose_spelling(rng: random.Random, *, short: bool) -> str:
    """Returns a random spelling; long sentences use only `_IN_LONG`."""
    spellings = tuple(SPELLINGS) if short else _IN_LONG
    return rng.choices(spellings, [SPELLINGS[each] for each in spellings])[0]


def respell(en: str, de: str, spelling: str) -> tuple[str, str]:
    """Returns the English sentence and its German translation in a spelling.

    German adopts the initial capital and the full stop of English. If English is all
    upper or lower case, German keeps the capitals of its nouns. If English always
    begins with a capital ("I"), German has an initial capital only before a full stop,
    so that each spelling of English has exactly one translation.

    Args:
        en: English sentence.
        de: German sentence.
        spelling: One of `SPELLINGS`.
    """
    match spelling:
        case "no hyphens":
            return en.replace("-", " "), de
        case "lower case":
            return en.lower(), de
        case "upper case":
            return en.upper(), de
    stop = "." if spelling in ("sentence", "full stop") else ""
    if en[0].islower() and spelling in ("sentence", "capital", "title case"):
        en, de = _capitalise(en), _capitalise(de)
    elif stop and en[0].isupper():
        de = _capitalise(de)
    if spelling == "title case":
        en = re.sub(r"(?<=[ -])\w", lambda initial: initial[0].upper(), en)
    return en + stop, de + stop


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]
