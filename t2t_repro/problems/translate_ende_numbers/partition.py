"""Which values belong to which split.

How the splits are kept apart: before any sentence is made, every composed value
is dealt to exactly one of "train", "val" and "test", and a split's sentences are
made from its own values alone. So no test value, and hence no test sentence, was
seen in training, in whatever sentence it might have stood. A composed value is

* a number of 100 or more: as a count, as an ordinal, as euros or as a year;
* a number below 100 (one English word) together with what it counts, or with
  what it numbers: "twenty-three books", "the twenty-third book";
* a day of the year, with or without its year: "the third of March";
* a time of the day: "half past four";
* a price below 100 euros: "five euros and ten cents".

Sentences without such a value ("they will arrive tomorrow") are dealt by a hash
of their words. Only the words are shared. They are learnable: times are dealt minute
by minute and days month by month, so that each split sees every minute and every
month, and `words` makes each word a line of the training split.
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
# Exceptions have to be met in training: "hundertste", not "einhundertste", and
# "ein Uhr", not "eins Uhr".
_TRAIN_ONLY_NUMBER = 100
_TRAIN_ONLY_TIME = (1, 0)
_VAL_SHARE, _TEST_SHARE = 0.06, 0.14


@dataclass
class Values:
    """The values of one split, each list in an order without meaning."""

    split: str = "train"
    hundreds: list[int] = field(default_factory=list)  # Numbers 100 to 999.
    thousands: list[int] = field(default_factory=list)  # Numbers 1,000 to 9,999.
    years: list[int] = field(default_factory=list)  # Numbers 1700 to 2099.
    # (number 2 to 99, English noun), "twenty-three books".
    counts: list[tuple[int, str]] = field(default_factory=list)
    # (number 1 to 99, English noun), "the twenty-third book".
    ordinals: list[tuple[int, str]] = field(default_factory=list)
    days: list[tuple[int, int]] = field(default_factory=list)  # (day, month).
    # (hour 1 to 12, minute).
    times: list[tuple[int, int]] = field(default_factory=list)
    # (euros 0 to 99, cents 0 to 99).
    prices: list[tuple[int, int]] = field(default_factory=list)

    def rounded(self) -> Values:
        """Returns these values with round numbers alone from 100 on.

        Those are 300 and the like, and as often each: 5,000 and the like, 5,300.
        """
        hundreds = [n for n in self.thousands if n % 100 == 0]
        thousands = [n for n in hundreds if n % 1000 == 0]
        return replace(
            self,
            hundreds=[n for n in self.hundreds if n % 100 == 0],
            thousands=hundreds + thousands * (len(hundreds) // len(thousands)),
        )


def partition(rng: random.Random) -> dict[str, Values]:
    """Deals all values to the splits; equal generators give equal splits."""
    splits = {split: Values(split) for split in SPLITS}
    nouns = [noun.en for noun in NOUNS]
    years = range(_FIRST_YEAR, _LAST_YEAR + 1)

    def deal(name: str, values: Iterable[object]) -> None:
        """Deals at random: about 80% to train, 6% to val, 14% to test, some to each."""
        dealt = list(values)
        rng.shuffle(dealt)
        val = max(1, round(len(dealt) * _VAL_SHARE))
        test = val + max(1, round(len(dealt) * _TEST_SHARE))
        getattr(splits["val"], name).extend(dealt[:val])
        getattr(splits["test"], name).extend(dealt[val:test])
        getattr(splits["train"], name).extend(dealt[test:])

    splits["train"].hundreds.append(_TRAIN_ONLY_NUMBER)
    splits["train"].times.append(_TRAIN_ONLY_TIME)
    deal("hundreds", range(_TRAIN_ONLY_NUMBER + 1, 1000))
    deal("thousands", (n for n in range(1000, 10_000) if n not in years))
    deal("years", years)
    # A number is in one split only, be it a year or a count.
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


def split_of(sentence: str) -> str:
    """Returns the split of a sentence that states no composed value, by its CRC-32."""
    share = zlib.crc32(sentence.encode()) / 2**32
    if share < _VAL_SHARE:
        return "val"
    return "test" if share < _VAL_SHARE + _TEST_SHARE else "train"
