"""How pairs are cut into batches: along the sorted lengths, or within buckets."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Groups:
    """Pairs in the order of their batches, before the batches are shuffled.

    Attributes:
        order: int64 (pairs,), pair numbers; a batch is a run of it.
        starts: int64 (batches,), first position of each batch in `order`.
        rows: int64 (batches,), filler rows included.
        widths: int64 (batches, 2), source and target width.
    """

    order: IntArray
    starts: IntArray
    rows: IntArray
    widths: IntArray

    @property
    def counts(self) -> IntArray:
        """Pairs in each batch, int64 (batches,)."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def shapes(self) -> IntArray:
        """Rows, source width and target width of each batch, int64 (batches, 3)."""
        return np.concatenate([self.rows[:, None], self.widths], axis=1)


def sort_and_cut(
    pairs: IntArray, lengths: IntArray, tokens_per_batch: int, rows_multiple: int
) -> Groups:
    """Sorts pairs by their longer side, ties in the order given, and cuts them.

    Args:
        pairs: int (pairs used,), pair numbers.
        lengths: int (all pairs, 2), source and target tokens.
        tokens_per_batch: Upper bound of rows x longer side.
        rows_multiple: Rows of every batch are a multiple of this.
    """
    longer = lengths[pairs].max(axis=1)
    by_length = stable_order(longer)
    order = pairs[by_length]
    starts, rows = cut_sorted(longer[by_length], tokens_per_batch, rows_multiple)
    widths = np.maximum.reduceat(lengths[order].astype(np.int64), starts)
    return Groups(order, starts, rows, widths)


def cut_sorted(
    longer: IntArray, tokens_per_batch: int, rows_multiple: int
) -> tuple[IntArray, IntArray]:
    """Cuts pairs sorted by length into batches that are as full as the bound allows.

    Args:
        longer: int (pairs,), longer side of each pair, ascending.
        tokens_per_batch: Upper bound of rows x longest.
        rows_multiple: Rows of every batch are a multiple of this.

    Returns:
        Starts int64 (batches,) and rows int64 (batches,), filler rows included. A
        batch holds at least one pair, even where it alone is beyond the bound.
    """
    starts, rows, start = [], [], 0
    while start < len(longer):
        most = max(1, tokens_per_batch // max(1, int(longer[start])))
        window = longer[start : start + most].astype(np.int64)
        fits = np.arange(1, len(window) + 1) * window <= tokens_per_batch
        count = max(1, int(np.count_nonzero(fits)))
        padded = -(-count // rows_multiple) * rows_multiple
        if padded * int(window[count - 1]) > tokens_per_batch and count > rows_multiple:
            count = padded = count // rows_multiple * rows_multiple
        starts.append(start)
        rows.append(padded)
        start += count
    return np.array(starts, np.int64), np.array(rows, np.int64)


def fill_buckets(
    pairs: IntArray,
    bucket: IntArray,
    widths: IntArray,
    tokens_per_batch: int,
    rows_multiple: int,
) -> Groups:
    """Cuts each bucket into equally full batches of one static shape.

    A bucket of n pairs becomes ceil(n / most rows) batches, whose rows are n over
    that number, rounded up: no batch is left nearly empty, and there are at most
    `rows_multiple` filler rows in a batch.

    Args:
        pairs: int (pairs,), pair numbers, shuffled.
        bucket: int (pairs,), the bucket of each.
        widths: int (buckets, 2), source and target width of each bucket.
        tokens_per_batch: Upper bound of rows x width.
        rows_multiple: Rows of every batch are a multiple of this.
    """
    order = pairs[stable_order(bucket)]
    sizes = np.bincount(bucket, minlength=len(widths))
    most_rows = tokens_per_batch // widths.max(axis=1) // rows_multiple * rows_multiple
    batches = -(-sizes // most_rows)
    firsts = np.cumsum(sizes) - sizes
    used = np.flatnonzero(sizes)
    rows = -(-sizes[used] // (batches[used] * rows_multiple)) * rows_multiple
    starts = [
        firsts[b] + np.arange(batches[b], dtype=np.int64) * sizes[b] // batches[b]
        for b in used
    ]
    return Groups(
        order=order,
        starts=np.concatenate(starts),
        rows=np.repeat(rows, batches[used]),
        widths=np.repeat(widths[used], batches[used], axis=0),
    )


def stable_order(keys: IntArray) -> IntArray:
    """Returns the stable sorting order of non-negative keys, int64 (entries,).

    NumPy sorts two-byte integers by radix, ten times faster than wider ones.
    """
    if keys.max(initial=0) < 1 << 16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")
