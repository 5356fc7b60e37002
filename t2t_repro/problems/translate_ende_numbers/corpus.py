"""The problem `translate_ende_numbers`: generates the corpus from sizes and a seed."""

import hashlib
import random
from collections.abc import Iterator
from functools import cache

from t2t_repro.problems.problem import SPLITS, Problem, check_split
from t2t_repro.problems.translate_ende_numbers.partition import partition
from t2t_repro.problems.translate_ende_numbers.sentences import (
    KINDS,
    Item,
    SentenceMaker,
)
from t2t_repro.problems.translate_ende_numbers.spelling import SPELLINGS, respell
from t2t_repro.problems.translate_ende_numbers.words import words

SEED = 1706
SIZES = {"train": 50_000, "val": 500, "test": 2_000}
# Number of training pairs with round numbers. Random numbers would include only one
# multiple of 1,000 in a thousand sentences, too few to learn "nine thousand".
ROUND = 9_000
WORD_REPEATS = 6
_DIGESTED = 500  # Number of lines of each split in the fingerprint.


class TranslateEndeNumbers(Problem):
    """Generated English-German number phrases, learnable in minutes.

    The training split has 50,000 sentence pairs, validation 500 and test 2,000. Each
    split contains the six kinds of `KINDS` in equal parts. The training split also
    contains the vocabulary as single words (see `words`). The values of the splits are
    disjoint (see `partition`), so that the test score measures composition instead of
    memorization.
    """

    name = "translate_ende_numbers"
    source_lang = "en"
    target_lang = "de"

    def items(self, split: str) -> tuple[Item, ...]:
        """Returns the items of a split; UserError if the split is unknown."""
        check_split(split)
        return _generate(split)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the (English, German) pairs of a split, in the order of `items`."""
        for item in self.items(split):
            yield item.source, item.target

    def description(self, split: str) -> str:
        """Returns e.g. "NAME, generated test split, 2,000 lines"."""
        lines = len(self.items(split))
        return f"{self.name}, generated {split} split, {lines:,} lines"

    def fingerprint(self) -> str:
        """Returns a digest of the first lines and the size of each split.

        Any change of the generator changes these lines. Generating all lines would take
        seconds.
        """
        return _digest()


@cache
def _generate(split: str, most: int | None = None) -> tuple[Item, ...]:
    """Returns the items of a split, with unique sources and alternating kinds.

    Args:
        split: Name of the split.
        most: Maximum number of items, None for all.
    """
    repeated = _words() * WORD_REPEATS if split == "train" else ()
    sentences = SIZES[split] - len(repeated)
    values = partition(random.Random(SEED))[split]
    rng = random.Random(SEED + 1 + SPLITS.index(split))
    maker = SentenceMaker(rng, values)
    items: dict[str, Item] = {}
    while len(items) < (sentences if most is None else min(sentences, most)):
        if split == "train" and len(items) == sentences - ROUND:
            maker = SentenceMaker(rng, values.round_numbers())
        kind = KINDS[len(items) % len(KINDS)]
        item = maker.make(kind)
        items.setdefault(item.source, item)
    return (*items.values(), *repeated)[:most]


def _words() -> tuple[Item, ...]:
    """Returns every word in every spelling, with unique sources."""
    items: dict[str, Item] = {}
    for word in words():
        for spelling in SPELLINGS:
            source, target = respell(word.en, word.de, spelling)
            items.setdefault(source, Item("word", (), source, target))
    return tuple(items.values())


@cache
def _digest() -> str:
    settings = f"round\t{ROUND}\nwords\t{WORD_REPEATS}\n"
    digest = hashlib.sha256(settings.encode())
    for split in SPLITS:
        digest.update(f"{split}\t{SIZES[split]}\n".encode())
        single_words = _words() if split == "train" else ()
        for item in (*_generate(split, _DIGESTED), *single_words):
            digest.update(f"{item.source}\t{item.target}\n".encode())
    return digest.hexdigest()
