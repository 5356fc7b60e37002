"""Parallel phrases: English, German, and the values that they contain."""

from typing import NamedTuple

# Type of the value (such as "date"), then its numbers or noun.
Value = tuple[str | int, ...]


class Phrase(NamedTuple):
    """English phrase with its German translation and the composed values in it."""

    en: str
    de: str
    values: tuple[Value, ...] = ()


NOTHING = Phrase("", "")


def join_phrases(en: str, de: str, *phrases: Phrase) -> Phrase:
    """Inserts phrases into a pattern per language, e.g. "from {0} until {1}"."""
    return Phrase(
        en.format(*(phrase.en for phrase in phrases)),
        de.format(*(phrase.de for phrase in phrases)),
        tuple(value for phrase in phrases for value in phrase.values),
    )


def join_words(*words: str) -> str:
    """Joins the non-empty words with spaces."""
    return " ".join(filter(None, words))
