"""Which static bucket a pair belongs to in an epoch."""

import numpy as np

from t2t_repro.batches.bucket_boundaries import choose_widths
from t2t_repro.batches.microbatches import rows_and_parts, stable_order, whole_rows
from t2t_repro.data.encoded_pairs import IntArray

# Share of the padded positions spent on giving batches new members every epoch.
MIXING_BUDGET = 0.001


def nearest_buckets(widths: IntArray, longest: int) -> tuple[IntArray, IntArray]:
    """Finds the two narrowest buckets that hold each pair of lengths.

    `widths` is int (buckets, 2), narrowest (by sum) first. Returns first and second
    choice by source and target length, int64 (longest + 1, longest + 1) each; -1: none.
    """
    first = np.full((longest + 1, longest + 1), -1)
    second = first.copy()
    # From the widest to the narrowest: each overtakes the choice made before it.
    for bucket in reversed(range(len(widths))):
        source, target = widths[bucket]
        held = np.s_[: source + 1, : target + 1]
        second[held] = first[held]
        first[held] = bucket
    return first, second


def chosen_buckets(
    shuffled: IntArray,
    longest: int,
    max_shapes: int,
    tokens_per_part: int = 0,
    rows_multiple: int = 1,
) -> tuple[IntArray, IntArray]:
    """Puts pairs into at most `max_shapes` buckets chosen for their lengths.

    A bucket that makes a single batch would hold the same pairs in every epoch. So some
    pairs, new ones every epoch, go to the second narrowest bucket that holds them. How
    many do is fixed, and so is every shape. `tokens_per_part`, positions of the wider
    side of a full part, moves more where `fill_buckets` would leave filler rows; 0
    moves none for that, as in the trainings whose results are published. With a
    `rows_multiple` buckets are as wide as that many rows, in multiples, allow.

    `shuffled` is int (pairs, 2), source and target lengths in random order. Returns the
    bucket of each pair, int64 (pairs,), and widths, int64 (buckets, 2).
    """
    side = longest + 1
    point = shuffled[:, 0].astype(np.int64) * side + shuffled[:, 1]
    counts = np.bincount(point, minlength=side * side)
    table: IntArray = counts.reshape(side, side)
    if rows_multiple > 1:
        table = _widened(table, tokens_per_part, rows_multiple)
    widths = choose_widths(table, max_shapes)
    first, second = (table.ravel()[point] for table in nearest_buckets(widths, longest))
    # Pairs that agree in both choices cost the same to move, so any of them may.
    choices = first * len(widths) + np.where(second >= 0, second, first)
    sizes = np.bincount(choices, minlength=len(widths) ** 2).reshape([len(widths)] * 2)
    moved = _moved(sizes, widths.sum(axis=1))
    if tokens_per_part:
        most_rows = tokens_per_part // widths.max(axis=1)
        _fill_rows(sizes, moved, most_rows, rows_multiple)
    return np.where(_rank(choices) < moved.ravel()[choices], second, first), widths


def _moved(sizes: IntArray, cost: IntArray) -> IntArray:
    """Returns how many pairs leave their first choice for their second, as `sizes`.

    Each bucket gives up at most half the pairs of each second choice, the cheapest
    first, until the positions added reach the budget; at least one pair of two goes.
    `sizes` is int (buckets, buckets), pairs of each first and second choice (the first
    again where there is none); `cost` int (buckets,), source plus target width.
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


def _widened(counts: IntArray, tokens_per_part: int, rows_multiple: int) -> IntArray:
    """Lengthens the wider side of pairs as far as it costs a part no rows.

    Else parts of some shapes would be much smaller than others, and devices that got
    them would wait. `counts` is int (longest + 1, longest + 1), pairs at each source
    and target length; so is the result.
    """
    lengths = np.arange(len(counts))
    most = whole_rows(tokens_per_part // np.maximum(lengths, 1), rows_multiple)
    widest = np.minimum(tokens_per_part // most, len(counts) - 1)
    widest[0] = 0
    source, target = np.nonzero(counts)
    wide = (
        np.where(source >= target, widest[source], source),
        np.where(target >= source, widest[target], target),
    )
    found = np.zeros_like(counts)
    np.add.at(found, wide, counts[source, target])
    return found


def _fill_rows(
    sizes: IntArray, moved: IntArray, most_rows: IntArray, rows_multiple: int
) -> None:
    """Moves more pairs to their second choice, into what would be filler rows there.

    `sizes` and `moved` (which grows) are as in `_moved`; `most_rows` is int (buckets,),
    pairs of a full part.
    """
    held = sizes.sum(axis=1) - moved.sum(axis=1) + moved.sum(axis=0)
    # A second choice is the wider one: the pairs that leave a bucket are known when
    # its turn comes.
    for second in reversed(range(len(held))):
        one = slice(second, second + 1)
        rows, parts = rows_and_parts(held[one], most_rows[one], rows_multiple)
        missing = int((rows * parts - held[one])[0])
        left = sizes[:second, second] - moved[:second, second]
        for first in np.flatnonzero(left)[::-1]:  # The cheapest moves first.
            more = min(missing, int(left[first]))
            moved[first, second] += more
            held[first] -= more
            missing -= more


def _rank(keys: IntArray) -> IntArray:
    """Returns how many earlier entries are equal to each, int64 (entries,)."""
    order = stable_order(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(starts, append=len(keys))
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(starts, sizes)
    return rank
