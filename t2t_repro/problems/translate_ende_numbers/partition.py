"""Divides the values of the corpus into disjoint sets for the splits.

Before sentences are generated, each composed value is assigned to exactly one of
"train", "val" and "test". Sentences of a split use only its own values. Thus no test
value, and no test sentence, occurs in the training split. The composed values are

* numbers of 100 or more, as counts, ordinals, euros or years;
* smaller numbers (one English word) with their noun: "twenty-three books", "the
  twenty-third book";
* days of the year, with or without a year: "the third of March";
* times of the day: "half past four";
* prices below 100 euros: "five euros and ten cents".

Sentences without such a value ("they will arrive tomorrow") are assigned by a hash of
their words. The splits share their vocabulary: times are assigned separately for each
minute, and days for each month, so that every split contains every minute and month.
Each word is also a line of the training split (see `words`).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from t2t_repro.problems.problem import SPLITS
from t2t_repro.problems.translate_ende_numbers.lexicon import NOUNS

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FIRST_YEAR, _LAST_YEAR = 1700, 2099
# Exceptions must occur in training: "hundertste", not "einhundertste", and "ein Uhr",
# not "eins Uhr".
_TRAIN_ONLY_NUMBER = 100
_TRAIN_ONLY_TIME = (1, 0)
_VAL_FRACTION, _TEST_FRACTION = 0.06, 0.14


@dataclass
class Values:
    """Values of one split, as unordered lists."""

    split: str = "train"
    hundreds: list[int] = field(default_factory=list)  # Numbers 100 to 999.
    thousands: list[int] = field(default_factory=list)  # Numbers 1,000 to 9,999.
    years: list[int] = field(default_factory=list)  # Numbers 1700 to 2099.
    # (number 2 to 99, English noun): "twenty-three books".
    counts: list[tuple[int, str]] = field(default_factory=list)
    # (number 1 to 99, English noun): "the twenty-third book".
    ordinals: list[tuple[int, str]] = field(default_factory=list)
    days: list[tuple[int, int]] = field(default_factory=list)  # (day, month).
    # (hour 1 to 12, minute).
    times: list[tuple[int, int]] = field(default_factory=list)
    # (euros 0 to 99, cents 0 to 99).
    prices: list[tuple[int, int]] = field(default_factory=list)

    def round_numbers(self) -> Values:
        """Returns a copy whose numbers of 100 or more are all round.

        In `thousands`, multiples of 1,000 are repeated until they are about as frequent
        as other round numbers.
        """
        hundreds = [n for n in self.thousands if n % 100 == 0]
        thousands = [n for n in hundreds if n % 1000 == 0]
        return replace(
            self,
            hundreds=[n for n in self.hundreds if n % 100 == 0],
            thousands=hundreds + thousands * (len(hundreds) // len(thousands)),
        )


def partition(rng: random.Random) -> dict[str, Values]:
    """Assigns all values to the splits, determined by the state of `rng`."""
    splits = {split: Values(split) for split in SPLITS}
    nouns = [noun.en for noun in NOUNS]
    years = range(_FIRST_YEAR, _LAST_YEAR + 1)

    def deal(name: str, values: Iterable[object]) -> None:
        """Assigns about 80% of the values to train, 6% to val and 14% to test.

        The assignment is random; val and test get at least one value each.
        """
        shuffled = list(values)
        rng.shuffle(shuffled)
        val = max(1, round(len(shuffled) * _VAL_FRACTION))
        test = val + max(1, round(len(shuffled) * _TEST_FRACTION))
        getattr(splits["val"], name).extend(shuffled[:val])
        getattr(splits["test"], name).extend(shuffled[val:test])
        getattr(splits["train"], name).extend(shuffled[test:])

    splits["train"].hundreds.append(_TRAIN_ONLY_NUMBER)
    splits["train"].times.append(_TRAIN_ONLY_TIME)
    deal("hundreds", range(_TRAIN_ONLY_NUMBER + 1, 1000))
    deal("thousands", (n for n in range(1000, 10_000) if n not in years))
    deal("years", years)
    # A number must be in the same split as a count and as a year.
    for values in splits.values():
        values.thousands.extend(values.years)
    deal("counts", ((n, noun) for n in range(2, 100) for noun in nouns))
    deal("ordinals", ((n, noun) for n in range(1, 100) for noun in nouns))
    for month, days in enumerate(_DAYS, start=1):
        deal("days", ((day, month) for day in range(1, days + 1)))
    for minute in range(60):
        times = ((hour, minute) for hour in range(1, 13))
        deal("times", (time for time in times if time != _TRAIN_ONLY_TIME))
    deal("prices", ((n // 100, n % 100) for n in range(1, 10_000)))
    return splits


def choose_split(sentence: str) -> str:
    """Returns the split of a sentence without composed values, from its CRC-32."""
    number = zlib.crc32(sentence.encode()) / 2**32
    if number < _VAL_FRACTION:
        return "val"
    return "test" if number < _VAL_FRACTION + _TEST_FRACTION else "train"
