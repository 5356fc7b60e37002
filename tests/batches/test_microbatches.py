"""Cutting of pairs into batches, against cuts made by hand."""

import numpy as np

from t2t_repro.batches.microbatches import cut_sorted, fill_buckets


def test_sorted_pairs_are_cut_as_full_as_the_bound_allows():
    # 3 x 4 = 12 fits, a fourth row would need 4 x 5 = 20; then 2 x 6, then 1 x 12.
    longer = np.array([2, 3, 4, 5, 6, 12])
    starts, rows = cut_sorted(longer, tokens_per_part=12)
    assert starts.tolist() == [0, 3, 5]
    assert rows.tolist() == [3, 2, 1]


def test_a_pair_beyond_the_bound_is_a_part_of_its_own():
    starts, rows = cut_sorted(np.array([4, 13]), tokens_per_part=12)
    assert starts.tolist() == [0, 1]
    assert rows.tolist() == [1, 1]


def test_buckets_are_cut_evenly_and_empty_ones_make_no_part():
    # 12 tokens: six rows of width 2, four of width 3, two of width 6.
    groups = fill_buckets(
        pairs=np.array([10, 11, 12, 13, 14, 15, 16]),
        bucket=np.array([2, 0, 2, 0, 2, 2, 2]),
        widths=np.array([[2, 1], [3, 3], [5, 6]]),
        tokens_per_part=12,
    )
    # Two pairs in one part of width 2; five in ceil(5 / 2) = 3 parts of 1, 2, 2.
    assert groups.order.tolist() == [11, 13, 10, 12, 14, 15, 16]
    assert groups.starts.tolist() == [0, 2, 3, 5]
    assert groups.counts.tolist() == [2, 1, 2, 2]
    assert groups.shapes.tolist() == [[2, 2, 1], [2, 5, 6], [2, 5, 6], [2, 5, 6]]
