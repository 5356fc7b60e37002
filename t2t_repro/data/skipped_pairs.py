"""Lists of skipped pairs: pairs of a split that are not used, with the reason."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray
from t2t_repro.data.manifest import read_manifest
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

SKIPPED_PAIRS_FILE = "skipped_pairs.tsv"


class SkippedPair(NamedTuple):
    """A skipped pair.

    Attributes:
        line: Line number of the pair in the split, from 1.
        reason: Reason for skipping the pair.
    """

    line: int
    reason: str


def write_skipped_pairs(
    directory: Path, by_reason: Mapping[str, Sequence[int]]
) -> None:
    """Writes the list of pairs that were not encoded, which may be empty.

    Args:
        directory: Folder of the split's shards.
        by_reason: Line numbers of the pairs, from 1, by reason.
    """
    text = "".join(f"{line}\t{reason}\n" for line, reason in _sort_by_line(by_reason))
    write_text_atomically(directory / SKIPPED_PAIRS_FILE, f"line\treason\n{text}")


def read_skipped_pairs(directory: Path) -> list[SkippedPair]:
    """Returns the pairs that were not encoded, in line order.

    Shards of version 0.1 lack the list, but their manifest has the first twenty pairs
    of each reason.

    Raises:
        UserError: If the folder contains neither a list nor a manifest, or the list is
            damaged.
    """
    path = directory / SKIPPED_PAIRS_FILE
    if not path.exists():
        left_out = read_manifest(directory).left_out
        return _sort_by_line(
            {reason: pairs.first for reason, pairs in left_out.items()}
        )
    try:
        text = path.read_text(encoding="utf-8")
        rows = (row.partition("\t") for row in text.split("\n")[1:-1])
        return [
            SkippedPair(int(line), reason)
            for line, _, reason in rows
            if line.isdecimal()
        ]
    except ValueError as error:  # Also of an integer with thousands of digits.
        raise UserError(f"{path} is damaged ({error}); run datagen again") from None


def _sort_by_line(by_reason: Mapping[str, Sequence[int]]) -> list[SkippedPair]:
    """Returns the pairs with the given lines, in line order."""
    items = by_reason.items()
    return sorted(
        SkippedPair(line, reason) for reason, lines in items for line in lines
    )


def find_long_pairs(
    lengths: IntArray, longest: int, not_encoded: Iterable[SkippedPair]
) -> list[SkippedPair]:
    """Returns the encoded pairs with a side that is too long for a batch.

    Args:
        lengths: int (pairs, 2), source and target tokens, EOS included.
        longest: Maximum number of tokens of a side.
        not_encoded: Pairs of the split that were not encoded.
    """
    pairs = np.flatnonzero(lengths.max(axis=1, initial=0) > longest)
    lines = line_numbers(pairs, not_encoded)
    return [
        SkippedPair(
            int(line),
            f"source has {source:,} tokens, target has {target:,}; the maximum is "
            f"{longest:,}",
        )
        for line, (source, target) in zip(lines, lengths[pairs].tolist(), strict=True)
    ]


def line_numbers(pairs: IntArray, not_encoded: Iterable[SkippedPair]) -> IntArray:
    """Returns the line numbers of encoded pairs in their split, int64 (pairs,), from 1.

    Args:
        pairs: int (pairs,), numbers of encoded pairs, from 0.
        not_encoded: Pairs of the split that were not encoded.
    """
    gaps = np.array(sorted(pair.line for pair in not_encoded), np.int64)
    # Number of encoded pairs before each pair that was not encoded.
    before = gaps - 1 - np.arange(len(gaps))
    return pairs + 1 + np.searchsorted(before, pairs, side="right")
