"""Mistakes in a corpus that only its statistics show.

Swapped sides, test pairs among the training pairs, another year's corpus, text that is
not raw. Training reports none of them, but ends with a score that is too low, too high
or cannot be compared.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from t2t_repro.problems.problem import Problem
from t2t_repro.problems.raw_text import LineMarks, find_preprocessing

# Lines of a split that a profile is made of; a few hundred tell languages apart.
_SAMPLE = 2000
# By how much more the swapped sides must resemble the training split's. Texts of one
# language and domain have a similarity above 0.9, English and German about 0.5.
_MARGIN = 0.1
# Training pairs of WMT16's English-German corpus, which has News Commentary v11 where
# WMT14's has v9, by the edition.
_WMT16_PAIRS = {
    # The catalog of TensorFlow Datasets.
    4_548_885: "wmt16_translate/de-en of TensorFlow Datasets",
    # As counted by users of NVIDIA's OpenSeq2Seq, whose scripts/get_en_de.sh downloads
    # the same files as google/seq2seq's.
    4_562_102: "train.* of google/seq2seq's wmt16_en_de.sh",
    # As logged by fairseq-preprocess (fairseq/examples/scaling_nmt). Papers often call
    # this edition WMT14.
    4_500_966: "train.tok.clean.* of Google's wmt16_en_de.tar.gz",
}


@dataclass
class _Side:
    """What is counted of one side of a split.

    Attributes:
        grams: how often each sequence of three characters occurs in its first lines,
            whose ends count as spaces.
        marks: the lines that another program has preprocessed.
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

    The splits `held_out`, to compare with the training split, are read at once; one
    that cannot be read is a UserError.
    """

    def __init__(self, problem: Problem, held_out: Sequence[str]) -> None:
        self._problem = problem
        self._held_out = {split: list(problem.pairs(split)) for split in held_out}
        self._wanted = set().union(*self._held_out.values())
        self._seen: set[tuple[str, str]] = set()
        self._train: _Sides | None = None

    def watched(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yields the training pairs, which somebody else needs, and looks at them."""
        self._train = source, target = _Side(), _Side()
        for pair in pairs:
            if pair in self._wanted:
                self._seen.add(pair)
            source.add(pair[0])
            target.add(pair[1])
            yield pair

    def findings(self) -> list[str]:
        """Returns what was found, a line each; reads the training split if need be."""
        if self._train is None:
            deque(self.watched(self._problem.pairs("train")), maxlen=0)
        assert self._train is not None
        languages = self._problem.source_lang, self._problem.target_lang
        splits, found = {"train": self._train}, []
        for split, pairs in self._held_out.items():
            splits[split] = sides = _Side(), _Side()
            for pair in pairs:
                sides[0].add(pair[0])
                sides[1].add(pair[1])
            if _look_swapped(self._train, sides):
                found.append(
                    f"the source side of the {split} split looks like the target side "
                    "of the training data, and the other way round: are its "
                    f"{languages[0]} and {languages[1]} files swapped?"
                )
            known = sum(pair in self._seen for pair in pairs)
            if known:
                found.append(
                    f"{known:,} of {len(pairs):,} {split} pairs "
                    f"({known / len(pairs):.1%}) are in the training data, too; "
                    "what is scored on them was learned by heart"
                )
        wmt16 = wmt16_for_wmt14(self._train[0].marks.lines, *languages)
        marks = [
            (f"{split}.{language}", side.marks)
            for split, sides in splits.items()
            for language, side in zip(languages, sides, strict=True)
        ]
        return found + ([wmt16] if wmt16 else []) + find_preprocessing(marks)


def wmt16_for_wmt14(pairs: int, source_lang: str, target_lang: str) -> str | None:
    """Describes training data that has the size of WMT16's corpus, else None.

    The paper trained on WMT14's "about 4.5 million sentence pairs" (section 5.1), which
    WMT16's corpus has, too. Only exact numbers are recognised.
    """
    edition = _WMT16_PAIRS.get(pairs)
    if edition is None or {source_lang, target_lang} != {"en", "de"}:
        return None
    return (
        f"the training data has {pairs:,} pairs, the number of WMT16's corpus "
        f"({edition}); the paper trained on WMT14's, 4,508,785 pairs "
        "(wmt14_translate/de-en of TensorFlow Datasets): train on those, or name WMT16 "
        "next to the score"
    )


def _look_swapped(train: _Sides, other: _Sides) -> bool:
    """Whether two sides resemble the training split's more when swapped.

    Cavnar and Trenkle 1994 tell languages apart by the same counts.
    """
    straight = sum(map(_similarity, train, other))
    crossed = sum(map(_similarity, train, reversed(other)))
    return crossed > straight + _MARGIN


def _similarity(one: _Side, other: _Side) -> float:
    """Returns the cosine of two sides' counts; 0 if one is empty."""
    norms = math.prod(sum(n * n for n in side.grams.values()) for side in (one, other))
    dot = sum(count * other.grams[gram] for gram, count in one.grams.items())
    return dot / math.sqrt(norms) if norms else 0.0
