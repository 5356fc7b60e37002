"""Detects mistakes in a corpus from its statistics.

The checks find swapped or equal sides, test pairs in the training data, WMT16 data in
place of WMT14, and preprocessed text. Training succeeds despite such mistakes, but the
score is too low, too high or not comparable.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from t2t_repro.problems.problem import Problem
from t2t_repro.problems.raw_text import LineMarks, find_preprocessing

# Lines per split whose trigrams are counted; a few hundred suffice to distinguish
# languages.
_SAMPLE = 2000
# Sides are reported as swapped if swapping them increases the similarity by more than
# this. Two texts of one language and domain have a similarity above 0.9, English and
# German texts about 0.5.
_MARGIN = 0.1
# Fraction of pairs with equal sides above which a split is reported. Names and numbers
# are equal in any two languages, but whole sentences seldom are.
_MOST_EQUAL = 0.5
# Number of training pairs in each edition of WMT16's English-German corpus, which
# contains News Commentary v11 (WMT14: v9).
_WMT16_PAIRS = {
    # Listed in the catalog of TensorFlow Datasets.
    4_548_885: "wmt16_translate/de-en of TensorFlow Datasets",
    # Counted by users of NVIDIA's OpenSeq2Seq, whose scripts/get_en_de.sh downloads
    # the same files as google/seq2seq's.
    4_562_102: "train.* of google/seq2seq's wmt16_en_de.sh",
    # Logged by fairseq-preprocess (fairseq/examples/scaling_nmt). Papers often call
    # this edition WMT14.
    4_500_966: "train.tok.clean.* of Google's wmt16_en_de.tar.gz",
}


@dataclass
class _Side:
    """Statistics of one side of a split.

    Attributes:
        grams: Count of each character trigram in the first lines; each line is padded
            with a space at both ends.
        marks: Counts of lines with traces of preprocessing.
    """

    grams: Counter[str] = field(default_factory=Counter)
    marks: LineMarks = field(default_factory=LineMarks)

    def add(self, line: str) -> None:
        """Counts a line."""
        if self.marks.lines < _SAMPLE:
            padded = f" {line.lower()[:10_000]} "
            self.grams.update(padded[i : i + 3] for i in range(len(padded) - 2))
        self.marks.add(line)


_Sides = tuple[_Side, _Side]


class Checks:
    """Looks for mistakes in a corpus while its training pairs are read.

    Args:
        problem: Source of the sentence pairs.
        held_out: Splits to compare with the training split, read immediately.
        source: Source of the held-out splits. Default: `problem`.

    Raises:
        UserError: A held-out split cannot be read.
    """

    def __init__(
        self, problem: Problem, held_out: Sequence[str], source: Problem | None = None
    ) -> None:
        self._problem = problem
        source = source or problem
        self._held_out = {split: list(source.pairs(split)) for split in held_out}
        self._held_out_pairs = set().union(*self._held_out.values())
        self._duplicates: set[tuple[str, str]] = set()
        self._train: _Sides | None = None
        # Number of pairs with equal sides in each split.
        self._equal = Counter({s: _count_equal(p) for s, p in self._held_out.items()})

    def collect(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Collects statistics of the training pairs and yields the pairs unchanged."""
        self._train = source, target = _Side(), _Side()
        for pair in pairs:
            if pair in self._held_out_pairs:
                self._duplicates.add(pair)
            source.add(pair[0])
            target.add(pair[1])
            if pair[0] == pair[1]:
                self._equal["train"] += _count_equal([pair])
            yield pair

    def findings(self) -> list[str]:
        """Returns one line for each mistake found.

        Reads the training split unless `collect` has already done so.
        """
        if self._train is None:
            deque(self.collect(self._problem.pairs("train")), maxlen=0)
        assert self._train is not None
        languages = self._problem.source_lang, self._problem.target_lang
        splits, findings = {"train": self._train}, []
        for split, pairs in self._held_out.items():
            splits[split] = sides = _Side(), _Side()
            for pair in pairs:
                sides[0].add(pair[0])
                sides[1].add(pair[1])
            if _look_swapped(self._train, sides):
                findings.append(
                    f"the source side of the {split} split looks like the target side "
                    "of the training data, and vice versa: are its "
                    f"{languages[0]} and {languages[1]} files swapped?"
                )
            duplicates = sum(pair in self._duplicates for pair in pairs)
            if duplicates:
                findings.append(
                    f"{duplicates:,} of {len(pairs):,} {split} pairs "
                    f"({duplicates / len(pairs):.1%}) are also in the training data: "
                    "remove them from one of the two, or the score will be too high"
                )
        for split, sides in splits.items():
            lines = sides[0].marks.lines
            if self._equal[split] > _MOST_EQUAL * lines:
                findings.append(
                    f"{self._equal[split]:,} of {lines:,} {split} pairs have equal "
                    f"sides: are the {languages[0]} and {languages[1]} files copies of "
                    "each other?"
                )
        wmt16 = wmt16_for_wmt14(self._train[0].marks.lines, *languages)
        marks = [
            (f"{split}.{language}", side.marks)
            for split, sides in splits.items()
            for language, side in zip(languages, sides, strict=True)
        ]
        return findings + ([wmt16] if wmt16 else []) + find_preprocessing(marks)


def wmt16_for_wmt14(pairs: int, source_lang: str, target_lang: str) -> str | None:
    """Returns a warning if the training data has exactly the size of WMT16's corpus.

    The paper trained on WMT14's "about 4.5 million sentence pairs" (section 5.1), and
    the corpus of WMT16 is about as large. Returns None for any other size.
    """
    edition = _WMT16_PAIRS.get(pairs)
    if edition is None or {source_lang, target_lang} != {"en", "de"}:
        return None
    return (
        f"the training data has {pairs:,} pairs, the size of WMT16's corpus "
        f"({edition}); the paper trained on the 4,508,785 pairs of WMT14 "
        "(wmt14_translate/de-en of TensorFlow Datasets): train on those, or report "
        "WMT16 with the score"
    )


def _count_equal(pairs: Iterable[tuple[str, str]]) -> int:
    """Returns the number of pairs with equal sides that are not blank."""
    return sum(source == target and bool(source.strip()) for source, target in pairs)


def _look_swapped(train: _Sides, other: _Sides) -> bool:
    """Returns whether a split resembles the training split more with swapped sides.

    Languages are identified by character trigrams, following Cavnar and Trenkle 1994.
    """
    straight = sum(map(_similarity, train, other))
    crossed = sum(map(_similarity, train, reversed(other)))
    return crossed > straight + _MARGIN


def _similarity(one: _Side, other: _Side) -> float:
    """Returns the cosine similarity of two sides' trigram counts; 0 if one is empty."""
    norms = math.prod(sum(n * n for n in side.grams.values()) for side in (one, other))
    dot = sum(count * other.grams[gram] for gram, count in one.grams.items())
    return dot / math.sqrt(norms) if norms else 0.0
