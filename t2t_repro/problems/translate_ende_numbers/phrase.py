"""A piece of English and its German, together with the values that it states."""

from typing import NamedTuple

# A number, ordinal, date, time or price: its type, then what identifies it.
Value = tuple[str | int, ...]


class Phrase(NamedTuple):
    """A piece of English, its German, and the composed values that it states."""

    en: str
    de: str
    values: tuple[Value, ...] = ()


NOTHING = Phrase("", "")


def joined(en: str, de: str, *phrases: Phrase) -> Phrase:
    """Fills phrases into a pattern of each language, e.g. "from {0} until {1}"."""
    return Phrase(
        en.format(*(phrase.en for phrase in phrases)),
        de.format(*(phrase.de for phrase in phrases)),
        tuple(value for phrase in phrases for value in phrase.values),
    )


def spaced(*words: str) -> str:
    """Joins words by spaces, leaving out the empty ones."""
    return " ".join(filter(None, words))
