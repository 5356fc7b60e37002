"""Cleaning of a corpus: checks each pair, compares it with the others, and splits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np
import numpy.typing as npt

from t2t_repro.cleaning.alignment import (
    FEWEST_SAMPLED,
    MOST_SAMPLED,
    PairScorer,
    find_stretches,
)
from t2t_repro.cleaning.checked_file import CheckedFile, Place
from t2t_repro.cleaning.checker import PairChecker
from t2t_repro.cleaning.lengths import LENGTH_RULES
from t2t_repro.cleaning.report import Report
from t2t_repro.cleaning.rules import CODES, RULES, Thresholds
from t2t_repro.system.errors import UserError
from t2t_repro.system.pool import map_in_order

SPLITS = ("train", "val", "test")

_PAIRS_PER_CALL = 4096
_MOST_HELD_OUT = 2000

Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int], object]
"""Receives the numbers of pairs and words that were processed since the last call."""
T = TypeVar("T")


class Corpus:
    """Pairs of a corpus in a file, and their verdicts in memory.

    Memory holds 50 bytes per pair, and a sample of the texts.

    Args:
        file: File of the checked pairs.
        workers: Number of processes; the results do not depend on it.
        progress: Function that is called after each chunk of pairs.

    Attributes:
        report: Counts and examples, complete after `write`.
    """

    def __init__(self, file: CheckedFile, workers: int, progress: Progress) -> None:
        self.report = Report()
        self._file = file
        self._workers = workers
        self._progress = progress

    def check(
        self, pairs: Iterable[Place], thresholds: Thresholds, languages: tuple[str, str]
    ) -> None:
        """Applies the repairs and the rules for a pair's own text.

        Pairs that an earlier run checked are skipped.
        """
        make = partial(PairChecker, thresholds, languages)
        rest = _divide(islice(pairs, self._file.pairs, None))
        for checked in map_in_order(make, rest, self._workers):
            self._file.append(checked)
            words = int(checked.marks["lengths"][..., 0].sum())
            self._progress(len(checked.marks), words)
        marks, self.report = self._file.read_marks()
        self._verdicts = marks["verdict"]
        self._lengths = marks["lengths"].astype(np.int64)
        self._hashes = marks["hashes"]

    def compare(self, thresholds: Thresholds) -> None:
        """Applies the rules that compare a pair with the corpus."""
        kept = self._kept()
        if "duplicate" in thresholds:
            first = np.unique(self._hashes[kept, 0], return_index=True)[1]
            self._verdicts[np.delete(kept, first)] = CODES["duplicate"]
        for rule, (measure, _) in LENGTH_RULES.items():
            kept = self._kept()
            if rule in thresholds and len(kept):
                values = measure(np.maximum(self._lengths[kept], 1))
                self._verdicts[kept[values > thresholds[rule]]] = CODES[rule]
        kept = self._kept()
        if "misaligned" in thresholds and len(kept) < FEWEST_SAMPLED:
            self.report.notes.append(
                f"rule misaligned is off, because it needs {FEWEST_SAMPLED:,} pairs"
            )
        elif "misaligned" in thresholds:
            stretches = find_stretches(
                self._log_odds(kept).tolist(), thresholds["misaligned"]
            )
            self._verdicts[kept[stretches]] = CODES["misaligned"]

    def write(
        self,
        folder: Path,
        languages: tuple[str, str],
        val_lines: int | None,
        test_lines: int | None,
    ) -> None:
        """Writes the splits and `dropped.tsv`, and completes the report.

        Args:
            folder: Folder of the results.
            languages: Endings of the files.
            val_lines: Number of validation pairs; None: 5 %, at most 2,000.
            test_lines: Number of test pairs; None: 5 %, at most 2,000.

        Raises:
            UserError: Too few pairs remain.
        """
        kept = self._kept()
        default = min(_MOST_HELD_OUT, len(kept) // 20)
        wanted = [default if n is None else n for n in (val_lines, test_lines)]
        splits = np.zeros(len(self._verdicts), np.uint8)
        splits[kept] = choose_splits(self._hashes[kept, 1], wanted)
        names = [SPLITS[number] for number in np.unique(splits[kept])]
        with ExitStack() as stack:

            def create(name: str) -> TextIO:
                path = folder / name
                return stack.enter_context(open(path, "w", encoding="utf-8"))

            dropped = create("dropped.tsv")
            files = {n: [create(f"{n}.{code}") for code in languages] for n in names}
            dropped.write("rule\tplace\tsource\ttarget\n")
            for line, code, split in zip(
                self._file.read_pairs(),
                self._verdicts.tolist(),
                splits.tolist(),
                strict=True,
            ):
                if code:
                    rule = list(RULES)[code - 1]
                    dropped.write("\t".join((rule, *line)) + "\n")
                    self.report.add(self.report.dropped, rule, line)
                else:
                    self.report.kept[SPLITS[split]] += 1
                    for file, text in zip(files[SPLITS[split]], line[1:], strict=True):
                        file.write(f"{text}\n")

    def _kept(self) -> Ints:
        return np.flatnonzero(self._verdicts == 0)

    def _log_odds(self, kept: Ints) -> npt.NDArray[np.float64]:
        """Returns the log odds that the sides of kept pairs do not belong together."""
        sampled = np.zeros(len(self._verdicts))
        sampled[kept[:: math.ceil(len(kept) / MOST_SAMPLED)]] = 1
        sample = [line[1:] for line in compress(self._file.read_pairs(), sampled)]
        make = partial(_Scoring, PairScorer(sample))
        flagged = zip(self._file.read_pairs(), sampled.tolist(), strict=True)
        chunks = _divide(compress(flagged, self._verdicts == 0))
        # The translations of one source are alike, so only the first one is evidence.
        sources = self._hashes[kept, 1]
        is_first = np.append(True, sources[1:] != sources[:-1])
        odds = [np.zeros(0)]
        for result in map_in_order(make, chunks, self._workers):
            self._progress(len(result), 0)
            odds.append(result)
        return np.concatenate(odds) * is_first


class _Scoring:
    """Scores chunks of pairs, with their flags, in a worker process."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer

    def __call__(self, chunk: Sequence[tuple[Place, float]]) -> npt.NDArray[np.float64]:
        pairs = [line[1:] for line, _ in chunk]
        return self._scorer.log_odds(pairs, np.array([flag for _, flag in chunk]))


def _divide(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, _PAIRS_PER_CALL)):
        yield chunk


def choose_splits(
    sources: npt.NDArray[np.uint64], wanted: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """Returns the split of each pair as its place in `SPLITS`.

    All pairs of a source are in the same split. The hashes of the sources decide, so
    that the order of the pairs does not matter.

    Args:
        sources: uint64 (pairs,), hashes of the sources.
        wanted: Numbers of validation and test pairs.

    Raises:
        UserError: Too few pairs remain for these numbers and for training.
    """
    _, owners, sizes = np.unique(sources, return_inverse=True, return_counts=True)
    splits = np.zeros(len(sizes), np.uint8)
    missing = [0, *wanted]
    for source, size in enumerate(sizes.tolist()):
        if size <= max(missing):
            split = next(n for n, number in enumerate(missing) if number >= size)
            splits[source] = split
            missing[split] -= size
    if any(missing) or not (splits == 0).any():
        raise UserError(
            f"{len(sources):,} pairs remain, too few for {wanted[0]:,} validation and "
            f"{wanted[1]:,} test pairs; choose other --val_lines and "
            "--test_lines"
        )
    return splits[owners]
