"""The problem `translate_ende_numbers`: sizes, seed, and the text itself."""

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
# Training pairs whose numbers are round: by chance, one sentence in a thousand has a
# whole thousand, too few to learn "nine thousand" from.
ROUND = 9_000
WORD_REPEATS = 6
_DIGESTED = 500  # Lines of each split.


class TranslateEndeNumbers(Problem):
    """English number phrases into German: generated, exact, learned in minutes.

    Training has 50,000 sentence pairs, validation 500, test 2,000; each split holds
    the six kinds of `KINDS` in equal parts, and training the words themselves (see
    `words`). No value that is translated in one split occurs in another (see
    `partition`), so a test score measures composition, not memory.
    """

    name = "translate_ende_numbers"
    source_lang = "en"
    target_lang = "de"

    def items(self, split: str) -> tuple[Item, ...]:
        """Returns a split's pairs, kinds and values; UserError for another split."""
        check_split(split)
        return _generate(split)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields the (English, German) pairs of a split, as `items`."""
        for item in self.items(split):
            yield item.source, item.target

    def description(self, split: str) -> str:
        """Returns e.g. "NAME, generated test split, 2,000 lines"."""
        lines = len(self.items(split))
        return f"{self.name}, generated {split} split, {lines:,} lines"

    def fingerprint(self) -> str:
        """Returns a digest of every split's first lines, and of how many there are.

        What changes the generator changes these; all lines would take seconds.
        """
        return _digest()


@cache
def _generate(split: str, most: int | None = None) -> tuple[Item, ...]:
    """Returns a split's items, or the first, sources all different, kinds in turn."""
    repeated = _words() * WORD_REPEATS if split == "train" else ()
    made = SIZES[split] - len(repeated)
    values = partition(random.Random(SEED))[split]
    rng = random.Random(SEED + 1 + SPLITS.index(split))
    maker = SentenceMaker(rng, values)
    items: dict[str, Item] = {}
    while len(items) < (made if most is None else min(made, most)):
        if split == "train" and len(items) == made - ROUND:
            maker = SentenceMaker(rng, values.rounded())
        kind = KINDS[len(items) % len(KINDS)]
        item = maker.make(kind)
        items.setdefault(item.source, item)
    return (*items.values(), *repeated)[:most]


def _words() -> tuple[Item, ...]:
    """Returns every word in every spelling, sources all different."""
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
        shown = _words() if split == "train" else ()
        for item in (*_generate(split, _DIGESTED), *shown):
            digest.update(f"{item.source}\t{item.target}\n".encode())
    return digest.hexdigest()
