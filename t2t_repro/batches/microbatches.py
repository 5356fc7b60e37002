"""Division of pairs into micro-batches: by sorted length, or within buckets."""

from dataclasses import dataclass

import numpy as np

from t2t_repro.data.encoded_pairs import IntArray


@dataclass(frozen=True)
class Groups:
    """Pairs grouped into micro-batches, before these are shuffled.

    Attributes:
        order: int64 (pairs,), pair numbers grouped by micro-batch.
        starts: int64 (micro-batches,), index in `order` of the first pair of each.
        shapes: int64 (micro-batches, 3), rows (filler rows included), source width and
            target width.
        rows: int (pairs,), row of each entry of `order` in its micro-batch, ascending;
            None if each pair has its own row.
    """

    order: IntArray
    starts: IntArray
    shapes: IntArray
    rows: IntArray | None = None

    @property
    def counts(self) -> IntArray:
        """Number of pairs in each micro-batch, int64 (micro-batches,)."""
        return np.diff(self.starts, append=len(self.order))


def sort_and_cut(
    pairs: IntArray,
    lengths: IntArray,
    tokens_per_microbatch: int,
    rows_multiple: int = 1,
) -> Groups:
    """Sorts pairs by their longer side (stable) and cuts them into micro-batches.

    `pairs` is int (used pairs,), pair numbers; `lengths` is int (all pairs, 2), source
    and target tokens. The other arguments are those of `cut_sorted`.
    """
    longer = lengths[pairs].max(axis=1)
    by_length = stable_order(longer)
    order = pairs[by_length]
    starts, rows = cut_sorted(longer[by_length], tokens_per_microbatch, rows_multiple)
    widths = np.maximum.reduceat(lengths[order].astype(np.int64), starts)
    return Groups(order, starts, np.column_stack([rows, widths]))


def cut_sorted(
    longer: IntArray, tokens_per_microbatch: int, rows_multiple: int = 1
) -> tuple[IntArray, IntArray]:
    """Cuts pairs sorted by length into micro-batches as large as the bound allows.

    Args:
        longer: int (pairs,), length of the longer side in tokens, ascending.
        tokens_per_microbatch: Upper bound on rows x longest side; a single pair may
            exceed it.
        rows_multiple: Divisor of the number of rows, if the bound allows that many.

    Returns:
        First pair and number of rows of each micro-batch, int64 (micro-batches,) each.
    """
    starts, rows, start = [], [], 0
    while start < len(longer):
        most = max(1, tokens_per_microbatch // max(1, int(longer[start])))
        window = longer[start : start + most].astype(np.int64)
        fits = np.arange(1, len(window) + 1) * window <= tokens_per_microbatch
        starts.append(start)
        most_rows = whole_rows(np.array([np.count_nonzero(fits)]), rows_multiple)
        rows.append(max(1, int(most_rows[0])))
        start += rows[-1]
    return np.array(starts, np.int64), np.array(rows, np.int64)


def whole_rows(most: IntArray, rows_multiple: int) -> IntArray:
    """Rounds row counts int (shapes,) down to a multiple, unless that would give 0."""
    return np.where(most < rows_multiple, most, most // rows_multiple * rows_multiple)


def rows_and_microbatches(
    sizes: IntArray, most: IntArray, rows_multiple: int
) -> tuple[IntArray, IntArray]:
    """Returns rows per micro-batch and micro-batches of each bucket.

    Args:
        sizes: int (buckets,), number of pairs in each.
        most: int (buckets,), maximum number of rows of a micro-batch.
        rows_multiple: Divisor of the number of rows, where `most` is at least that.

    Returns:
        Rows and number of micro-batches, int64 (buckets,) each; 0 and 1 for a bucket
        without pairs.
    """
    most = whole_rows(most, rows_multiple)
    rows = -(-sizes // np.maximum(1, -(-sizes // most)))
    rows = np.minimum(most, -(-rows // rows_multiple) * rows_multiple)
    return rows, np.maximum(1, -(-sizes // np.maximum(1, rows)))


def fill_buckets(
    pairs: IntArray,
    bucket: IntArray,
    widths: IntArray,
    tokens_per_microbatch: int,
    rows_multiple: int = 1,
) -> Groups:
    """Cuts each bucket into micro-batches of one shape with nearly equal pair counts.

    A bucket of n pairs becomes p = ceil(n / maximum rows) micro-batches of ceil(n / p)
    rows, so each has at most one filler row. With `rows_multiple` above 1, the filler
    rows of a bucket are spread evenly and are fewer than the rows of one micro-batch.

    Args:
        pairs: int (pairs,), shuffled pair numbers.
        bucket: int (pairs,), bucket of each pair.
        widths: int (buckets, 2), source and target widths.
        tokens_per_microbatch: Upper bound on rows x wider side.
        rows_multiple: Divisor of the number of rows, if the bound allows that many.
    """
    order = pairs[stable_order(bucket)]
    sizes = np.bincount(bucket, minlength=len(widths))
    most = tokens_per_microbatch // widths.max(axis=1)
    rows, counts = rows_and_microbatches(sizes, most, rows_multiple)
    firsts = np.cumsum(sizes) - sizes
    used = np.flatnonzero(sizes)
    starts = [
        firsts[b] + np.arange(counts[b], dtype=np.int64) * sizes[b] // counts[b]
        for b in used
    ]
    shapes = np.column_stack([rows, widths])[used]
    return Groups(order, np.concatenate(starts), shapes.repeat(counts[used], axis=0))


def stable_order(keys: IntArray) -> IntArray:
    """Returns the stable sorting order of non-negative keys, int64 (entries,)."""
    # NumPy uses radix sort for 16-bit integers, which is ten times faster.
    if keys.max(initial=0) < 1 << 16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")
