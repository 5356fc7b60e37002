"""Cutting of pairs into batches, against cuts made by hand."""

import numpy as np

from t2t_repro.data.grouping import cut_sorted, fill_buckets


def test_sorted_pairs_are_cut_as_full_as_the_bound_allows():
    # 3 x 4 = 12 fits, a fourth row would need 4 x 5 = 20; then 2 x 6, then 1 x 12.
    longer = np.array([2, 3, 4, 5, 6, 12])
    starts, rows = cut_sorted(longer, tokens_per_batch=12, rows_multiple=1)
    assert starts.tolist() == [0, 3, 5]
    assert rows.tolist() == [3, 2, 1]


def test_rows_are_rounded_down_to_the_multiple_and_the_last_batch_is_filled_up():
    # Five rows of 4 fit in 20; a multiple of 2 leaves four; the last two need no
    # filler, the odd seventh pair gets one.
    starts, rows = cut_sorted(np.full(7, 4), tokens_per_batch=20, rows_multiple=2)
    assert starts.tolist() == [0, 4]
    assert rows.tolist() == [4, 4]


def test_filling_up_never_breaks_the_bound():
    # Five rows of 4 fit in 22 tokens but six do not, so two rows of the multiple 4
    # cannot follow: four pairs, then one pair with three filler rows.
    starts, rows = cut_sorted(np.full(5, 4), tokens_per_batch=22, rows_multiple=4)
    assert starts.tolist() == [0, 4]
    assert rows.tolist() == [4, 4]


def test_buckets_are_cut_evenly_and_empty_ones_make_no_batch():
    # 12 tokens: six rows of width 2, four of width 3, two of width 6.
    groups = fill_buckets(
        pairs=np.array([10, 11, 12, 13, 14, 15, 16]),
        bucket=np.array([2, 0, 2, 0, 2, 2, 2]),
        widths=np.array([[2, 1], [3, 3], [5, 6]]),
        tokens_per_batch=12,
        rows_multiple=1,
    )
    # Two pairs in one batch of width 2; five in ceil(5 / 2) = 3 batches of 1, 2, 2.
    assert groups.order.tolist() == [11, 13, 10, 12, 14, 15, 16]
    assert groups.starts.tolist() == [0, 2, 3, 5]
    assert groups.counts.tolist() == [2, 1, 2, 2]
    assert groups.shapes.tolist() == [[2, 2, 1], [2, 5, 6], [2, 5, 6], [2, 5, 6]]
