"""How pairs are cut into parts: along the sorted lengths, or within buckets.

A part is a rectangle of one shape; a batch is made of one part or of several.
"""

from dataclasses import dataclass

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


@dataclass(frozen=True)
class Groups:
    """Pairs in the order of their parts, before the parts are shuffled."""

    order: IntArray  # int64 (pairs,), pair numbers; a part is a run of it.
    starts: IntArray  # int64 (parts,), first position of each part in `order`.
    # int64 (parts, 3): rows with filler rows, source and target width.
    shapes: IntArray

    @property
    def counts(self) -> IntArray:
        """Pairs in each part, int64 (parts,)."""
        return np.diff(self.starts, append=len(self.order))


def sort_and_cut(
    pairs: IntArray, lengths: IntArray, tokens_per_part: int, rows_multiple: int = 1
) -> Groups:
    """Sorts pairs by their longer side, ties in the order given, and cuts them.

    `pairs` is int (pairs used,), `lengths` int (all pairs, 2) in tokens; rows x longer
    side is at most `tokens_per_part`; rows are a multiple if as many fit.
    """
    longer = lengths[pairs].max(axis=1)
    by_length = stable_order(longer)
    order = pairs[by_length]
    starts, rows = cut_sorted(longer[by_length], tokens_per_part, rows_multiple)
    widths = np.maximum.reduceat(lengths[order].astype(np.int64), starts)
    return Groups(order, starts, np.column_stack([rows, widths]))


def cut_sorted(
    longer: IntArray, tokens_per_part: int, rows_multiple: int = 1
) -> tuple[IntArray, IntArray]:
    """Cuts pairs sorted by length into parts that are as full as the bound allows.

    `longer` is int (pairs,), ascending; rows x longest is at most `tokens_per_part` but
    for a single longer pair. Returns starts and rows, int64 (parts,) each.
    """
    starts, rows, start = [], [], 0
    while start < len(longer):
        most = max(1, tokens_per_part // max(1, int(longer[start])))
        window = longer[start : start + most].astype(np.int64)
        fits = np.arange(1, len(window) + 1) * window <= tokens_per_part
        starts.append(start)
        most_rows = whole_rows(np.array([np.count_nonzero(fits)]), rows_multiple)
        rows.append(max(1, int(most_rows[0])))
        start += rows[-1]
    return np.array(starts, np.int64), np.array(rows, np.int64)


def whole_rows(most: IntArray, rows_multiple: int) -> IntArray:
    """Returns int (shapes,) numbers of rows, cut to a multiple where one is left."""
    return np.where(most < rows_multiple, most, most // rows_multiple * rows_multiple)


def rows_and_parts(
    sizes: IntArray, most: IntArray, rows_multiple: int
) -> tuple[IntArray, IntArray]:
    """Returns rows and number of equal parts of each bucket, int64 (buckets,) each.

    `sizes` is int (buckets,), pairs of each; `most` its rows that fit into a part. A
    bucket without pairs has one part of no rows.
    """
    most = whole_rows(most, rows_multiple)
    rows = -(-sizes // np.maximum(1, -(-sizes // most)))
    rows = np.minimum(most, -(-rows // rows_multiple) * rows_multiple)
    return rows, np.maximum(1, -(-sizes // np.maximum(1, rows)))


def fill_buckets(
    pairs: IntArray,
    bucket: IntArray,
    widths: IntArray,
    tokens_per_part: int,
    rows_multiple: int = 1,
) -> Groups:
    """Cuts each bucket into equally full parts of one static shape.

    A bucket of n pairs becomes ceil(n / most rows) parts of n over that number of rows,
    rounded up: none is nearly empty, none has more than one filler row. With a
    `rows_multiple` a bucket has less than one part's filler rows in all, spread evenly.
    `pairs` is int (pairs,), shuffled; `bucket` int (pairs,); `widths` int (buckets, 2).
    """
    order = pairs[stable_order(bucket)]
    sizes = np.bincount(bucket, minlength=len(widths))
    most = tokens_per_part // widths.max(axis=1)
    rows, parts = rows_and_parts(sizes, most, rows_multiple)
    firsts = np.cumsum(sizes) - sizes
    used = np.flatnonzero(sizes)
    starts = [
        firsts[b] + np.arange(parts[b], dtype=np.int64) * sizes[b] // parts[b]
        for b in used
    ]
    shapes = np.column_stack([rows, widths])[used]
    return Groups(order, np.concatenate(starts), shapes.repeat(parts[used], axis=0))


def stable_order(keys: IntArray) -> IntArray:
    """Returns the stable sorting order of non-negative keys, int64 (entries,).

    NumPy sorts two-byte integers by radix, ten times faster than wider ones.
    """
    if keys.max(initial=0) < 1 << 16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")
