"""Assignment of pairs to static buckets in an epoch."""

import numpy as np

from t2t_repro.batches.bucket_boundaries import choose_widths
from t2t_repro.batches.microbatches import (
    rows_and_microbatches,
    stable_order,
    whole_rows,
)
from t2t_repro.data.encoded_pairs import IntArray

# Fraction of padded positions added to mix the pairs of small buckets.
MIXING_BUDGET = 0.001


def nearest_buckets(widths: IntArray, longest: int) -> tuple[IntArray, IntArray]:
    """Returns the two narrowest buckets into which each pair of lengths fits.

    Args:
        widths: int (buckets, 2), source and target widths, ascending by their sum.
        longest: Maximum source and target length.

    Returns:
        Narrowest and second narrowest bucket by source and target length, int64
        (longest + 1, longest + 1) each; -1 if there is none.
    """
    first = np.full((longest + 1, longest + 1), -1)
    second = first.copy()
    # From the widest to the narrowest, so that the narrowest is assigned last.
    for bucket in reversed(range(len(widths))):
        source, target = widths[bucket]
        fitting = np.s_[: source + 1, : target + 1]
        second[fitting] = first[fitting]
        first[fitting] = bucket
    return first, second


def choose_buckets(
    shuffled: IntArray,
    longest: int,
    max_shapes: int,
    tokens_per_microbatch: int = 0,
    rows_multiple: int = 1,
) -> tuple[IntArray, IntArray]:
    """Chooses at most `max_shapes` bucket boundaries and assigns pairs to the buckets.

    A bucket that fills a single batch would contain the same pairs in every epoch.
    Therefore some pairs, chosen at random in each epoch, go to the second narrowest
    bucket that fits. Their number and all shapes are the same in every epoch.

    Args:
        shuffled: int (pairs, 2), source and target lengths in random order.
        longest: Maximum source and target length.
        max_shapes: Maximum number of buckets.
        tokens_per_microbatch: Positions of the wider side of a full micro-batch. If it
            is above 0, additional pairs move to their second choice, to replace the
            filler rows that `fill_buckets` would add. 0 disables this, as in the
            published training runs.
        rows_multiple: If above 1, each bucket is widened as far as possible without
            reducing the rows of its micro-batches, a multiple of this number.

    Returns:
        Bucket of each pair, int64 (pairs,), and widths, int64 (buckets, 2).
    """
    side = longest + 1
    point = shuffled[:, 0].astype(np.int64) * side + shuffled[:, 1]
    counts = np.bincount(point, minlength=side * side)
    table: IntArray = counts.reshape(side, side)
    if rows_multiple > 1:
        table = _widen(table, tokens_per_microbatch, rows_multiple)
    widths = choose_widths(table, max_shapes)
    first, second = (table.ravel()[point] for table in nearest_buckets(widths, longest))
    # All pairs with the same two choices are equally expensive to move.
    choices = first * len(widths) + np.where(second >= 0, second, first)
    sizes = np.bincount(choices, minlength=len(widths) ** 2).reshape([len(widths)] * 2)
    moved = _count_moves(sizes, widths.sum(axis=1))
    if tokens_per_microbatch:
        most_rows = tokens_per_microbatch // widths.max(axis=1)
        _fill_rows(sizes, moved, most_rows, rows_multiple)
    return np.where(_rank(choices) < moved.ravel()[choices], second, first), widths


def _count_moves(sizes: IntArray, cost: IntArray) -> IntArray:
    """Returns the number of pairs to move from their first to their second choice.

    At most half of the pairs with the same two choices move. In each bucket the
    cheapest moves come first, until the added positions reach the budget. At least one
    pair of a bucket moves if two of its pairs share a second choice.

    Args:
        sizes: int (buckets, buckets), number of pairs by first and second choice. A
            pair without a second choice is counted on the diagonal.
        cost: int (buckets,), source width plus target width.

    Returns:
        int (buckets, buckets), indexed like `sizes`.
    """
    moved = np.zeros_like(sizes)
    for first in np.flatnonzero(sizes.any(axis=1)):
        budget = MIXING_BUDGET * int(sizes[first].sum()) * int(cost[first])
        seconds = np.flatnonzero(sizes[first] >= 2)
        seconds = seconds[seconds != first]
        for second in seconds[np.argsort(cost[seconds], kind="stable")]:
            price = int(cost[second] - cost[first])
            half = int(sizes[first, second]) // 2
            affordable = int(budget // price) if price else half
            if not moved[first].any():
                affordable = max(1, affordable)
            moved[first, second] = min(half, affordable)
            budget = max(0.0, budget - moved[first, second] * price)
    return moved


def _widen(
    counts: IntArray, tokens_per_microbatch: int, rows_multiple: int
) -> IntArray:
    """Widens each pair's longer side to the largest width with the same number of rows.

    Otherwise, rounding rows down to a multiple would make some micro-batches much
    smaller than others, and their devices would wait. `counts` and the result are int
    (longest + 1, longest + 1), number of pairs by source and target length.
    """
    lengths = np.arange(len(counts))
    most = whole_rows(tokens_per_microbatch // np.maximum(lengths, 1), rows_multiple)
    widest = np.minimum(tokens_per_microbatch // most, len(counts) - 1)
    widest[0] = 0
    source, target = np.nonzero(counts)
    wide = (
        np.where(source >= target, widest[source], source),
        np.where(target >= source, widest[target], target),
    )
    widened = np.zeros_like(counts)
    np.add.at(widened, wide, counts[source, target])
    return widened


def _fill_rows(
    sizes: IntArray, moved: IntArray, most_rows: IntArray, rows_multiple: int
) -> None:
    """Moves more pairs to their second choice, where they replace filler rows.

    Updates `moved`, the result of `_count_moves` for `sizes`, in place. `most_rows` is
    int (buckets,), rows of a full micro-batch.
    """
    members = sizes.sum(axis=1) - moved.sum(axis=1) + moved.sum(axis=0)
    # A second choice is always wider than the first. In the order from wide to narrow,
    # all moves out of a bucket are counted before its filler rows are computed.
    for second in reversed(range(len(members))):
        filled, most = members[second], most_rows[second]
        rows, microbatches = rows_and_microbatches(filled, most, rows_multiple)
        missing = int(rows * microbatches - filled)
        movable = sizes[:second, second] - moved[:second, second]
        for first in np.flatnonzero(movable)[::-1]:  # The cheapest moves come first.
            more = min(missing, int(movable[first]))
            moved[first, second] += more
            members[first] -= more
            missing -= more


def _rank(keys: IntArray) -> IntArray:
    """Returns the number of earlier equal entries for each key, int64 (entries,)."""
    order = stable_order(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(starts, append=len(keys))
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(starts, sizes)
    return rank
