"""Lists the vocabulary as single words and short phrases for the training split."""

from collections.abc import Iterator

from t2t_repro.problems.translate_ende_numbers import english, german
from t2t_repro.problems.translate_ende_numbers.german import NOMINATIVE
from t2t_repro.problems.translate_ende_numbers.lexicon import (
    ADJECTIVES,
    CITIES,
    MONTHS,
    NOUNS,
    NOWS,
    TIME_ADVERBS,
    WEEKDAYS,
)
from t2t_repro.problems.translate_ende_numbers.phrase import NOTHING, Phrase
from t2t_repro.problems.translate_ende_numbers.phrases import add_article


def words() -> Iterator[Phrase]:
    """Yields each word, and nouns also with their articles.

    These phrases contain no composed values (see `partition`), so all are in training.
    """
    for n in range(100):
        yield Phrase(english.cardinal(n), german.cardinal(n))
    for last in range(2, 11):
        counted = range(1, last + 1)
        yield Phrase(
            " ".join(map(english.cardinal, counted)),
            " ".join(map(german.cardinal, counted)),
        )
    for day in WEEKDAYS:
        yield day
        yield Phrase(f"on {day.en}", f"am {day.de}")
        for now in NOWS:
            yield Phrase(f"{now.en} {day.en}", f"{now.de} {day.de}")
    for month in MONTHS:
        yield month
        yield Phrase(f"in {month.en}", f"im {month.de}")
    for noun in NOUNS:
        one = add_article(noun, NOTHING, NOMINATIVE, definite=False)
        yield Phrase(noun.en, noun.de)
        yield Phrase(noun.en_plural, noun.de_plural)
        yield Phrase(f"one {noun.en}", one.de)
        yield one
        yield add_article(noun, NOTHING, NOMINATIVE)
        yield Phrase(f"the {noun.en_plural}", f"die {noun.de_plural}")
    yield from ADJECTIVES
    yield from TIME_ADVERBS
    yield from CITIES
