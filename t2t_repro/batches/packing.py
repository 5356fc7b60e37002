"""Packing of several pairs into one row.

A packed row holds pairs one after the other: the source sentences on one side and their
translations, in the same order, on the other. All rows have the same width, so all
micro-batches have one shape, and only a few positions are padding.

The lengths that share a row depend only on the lengths of all pairs. An epoch chooses
at random which pair of equal lengths takes which place, and the order of the rows.

Source: tensor2tensor data_generators/generator_utils.py:pack_examples, which packs
pairs in the order of the file into the first of ten open rows.
"""

import numpy as np

from t2t_repro.batches.microbatches import Groups, stable_order
from t2t_repro.data.encoded_pairs import IntArray


def pack_rows(sides: IntArray, width: int) -> tuple[IntArray, int]:
    """Assigns pairs to rows of which neither side exceeds the width.

    As many rows as the tokens would fill are open at once. In each round, every row
    gets one of the longest remaining pairs. Pairs with longer sources than targets go
    to rows with more room for the source, so that both sides fill evenly. A pair that
    does not fit waits for the next round, in which the longest pair goes to the row
    with most room. Pairs for which no row has room are packed into new rows at the end.

    Args:
        sides: int (2, pairs), source and target tokens, at most `width`; sorted by the
            longer side, descending.
        width: Tokens of each side of a row.

    Returns:
        Row of each pair, int32 (pairs,), and the number of rows.
    """
    row, rows = np.empty(sides.shape[1], np.int32), 0
    pairs: IntArray = np.arange(len(row))
    while len(pairs):
        tokens = int(sides[:, pairs].sum(axis=1, dtype=np.int64).max())
        new = -(-tokens // width)
        room = np.full((2, new), width, sides.dtype)
        waiting, unpacked, first = pairs[:0], [], 0
        while first < len(pairs) or len(waiting):
            last = first + new - len(waiting)
            now, first = np.concatenate([waiting, pairs[first:last]]), last
            chosen = stable_order(width - room.min(axis=0))[: len(now)]
            if not len(waiting):
                chosen = chosen[_sort_by_balance(room[:, chosen], width)]
                now = now[_sort_by_balance(sides[:, now], width)]
            left = room[:, chosen] - sides[:, now]
            fits = left.min(axis=0) >= 0
            row[now[fits]] = rows + chosen[fits]
            room[:, chosen[fits]] = left[:, fits]
            waiting = np.sort(now[~fits])
            has_room = sides[:, waiting].max(axis=0) <= room.min(axis=0).max()
            unpacked.append(waiting[~has_room])
            waiting = waiting[has_room]
        pairs, rows = np.concatenate(unpacked), rows + new
    return row, rows


def _sort_by_balance(sides: IntArray, width: int) -> IntArray:
    """Returns the order by target minus source of int (2, entries), at most `width`."""
    return stable_order(width + sides[1] - sides[0])


def pack_epoch(
    shuffled: IntArray,
    lengths: IntArray,
    width: int,
    most_rows: int,
    microbatches_per_batch: int,
    rng: np.random.Generator,
) -> Groups:
    """Packs pairs into micro-batches of one shape, in random order.

    The filler rows of the last batch are spread over all micro-batches of the epoch.

    Args:
        shuffled: int (used pairs,), pair numbers in random order.
        lengths: int (all pairs, 2), source and target tokens.
        width: Tokens of each side of a row.
        most_rows: Maximum number of rows of a micro-batch, 1 or even.
        microbatches_per_batch: Number of micro-batches of every batch.
        rng: Chooses the order of the rows.
    """
    # Sorted by both lengths, so that they are in the same order in every epoch.
    sides = np.ascontiguousarray(lengths[shuffled].T)
    order = _sort_by_balance(sides, width)
    order = order[stable_order(width - sides[:, order].max(axis=0))]
    row, rows = pack_rows(sides[:, order], width)
    row = rng.permutation(rows).astype(row.dtype)[row]
    by_row = stable_order(row)
    row = row[by_row]

    batches = -(-rows // (most_rows * microbatches_per_batch))
    count = microbatches_per_batch * batches
    first_rows = (np.arange(count) * rows // count).astype(row.dtype)
    starts = np.searchsorted(row, first_rows)
    counts = np.diff(starts, append=len(row))
    each = -(-rows // count)
    each = min(most_rows, each + each % 2)
    return Groups(
        shuffled[order[by_row]],
        starts,
        np.tile([each, width, width], (count, 1)),
        row - np.repeat(first_rows, counts),
    )
