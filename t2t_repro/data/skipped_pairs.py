"""The pairs of a split that nothing is learned from: which, and why."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray
from t2t_repro.data.manifest import read_manifest
from t2t_repro.system.atomic_file import write_text_atomically

SKIPPED_PAIRS_FILE = "skipped_pairs.tsv"
_FORMER_FILE = "left_out.tsv"


class SkippedPair(NamedTuple):
    """One pair.

    Attributes:
        line: its number in the split, counted from 1 as lines of a file are.
        reason: why it is left out.
    """

    line: int
    reason: str


def write_skipped_pairs(
    directory: Path, by_reason: Mapping[str, Sequence[int]]
) -> None:
    """Writes the list of the pairs that were not encoded, even if there is none.

    Args:
        directory: the split's shards.
        by_reason: the numbers of the pairs, counted from 1.
    """
    pairs = sorted(
        SkippedPair(line, reason)
        for reason, lines in by_reason.items()
        for line in lines
    )
    text = "".join(f"{line}\t{reason}\n" for line, reason in pairs)
    write_text_atomically(directory / SKIPPED_PAIRS_FILE, f"line\treason\n{text}")


def read_skipped_pairs(directory: Path) -> list[SkippedPair]:
    """Returns the pairs that were not encoded, in their order.

    Shards of version 0.2.0 and earlier have the list under its former name; the oldest
    have none, and their manifest has the first twenty pairs of each reason.

    Raises:
        UserError: the folder holds no shards.
    """
    names = (SKIPPED_PAIRS_FILE, _FORMER_FILE)
    path = next((directory / n for n in names if (directory / n).exists()), None)
    if path is None:
        known = read_manifest(directory).left_out
        pairs = ((n, reason) for reason in known for n in known[reason].first)
        return sorted(SkippedPair(*pair) for pair in pairs)
    text = path.read_text(encoding="utf-8")
    rows = (row.partition("\t") for row in text.split("\n")[1:-1])
    return [SkippedPair(int(line), why) for line, _, why in rows if line.isdecimal()]


def too_long(
    lengths: IntArray, longest: int, not_encoded: Iterable[SkippedPair]
) -> list[SkippedPair]:
    """Returns the encoded pairs with a side that no batch takes.

    Args:
        lengths: int (pairs, 2), source and target subwords, EOS included.
        longest: the most subwords of a side.
        not_encoded: the pairs of the split that were not encoded.
    """
    pairs = np.flatnonzero(lengths.max(axis=1, initial=0) > longest)
    lines = line_numbers(pairs, not_encoded)
    return [
        SkippedPair(
            int(line),
            f"source of {source:,} and target of {target:,} subwords, the longest is "
            f"{longest:,}",
        )
        for line, (source, target) in zip(lines, lengths[pairs].tolist(), strict=True)
    ]


def line_numbers(pairs: IntArray, not_encoded: Iterable[SkippedPair]) -> IntArray:
    """Returns where encoded pairs stand in their split, int64 (pairs,), from 1.

    Args:
        pairs: int (pairs,), numbers of encoded pairs, from 0.
        not_encoded: the pairs of the split that were not encoded.
    """
    gaps = np.array(sorted(pair.line for pair in not_encoded), np.int64)
    # How many encoded pairs stand before each gap.
    before = gaps - 1 - np.arange(len(gaps))
    return pairs + 1 + np.searchsorted(before, pairs, side="right")
