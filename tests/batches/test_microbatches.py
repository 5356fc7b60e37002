"""Division of pairs into micro-batches; expected values computed by hand."""

import numpy as np

from t2t_repro.batches.microbatches import cut_sorted, fill_buckets


def test_sorted_pairs_fill_the_bound():
    # 3 x 4 = 12 fits; a fourth row would need 4 x 5 = 20. Then 2 x 6 and 1 x 12.
    longer = np.array([2, 3, 4, 5, 6, 12])
    starts, rows = cut_sorted(longer, tokens_per_microbatch=12)
    assert starts.tolist() == [0, 3, 5]
    assert rows.tolist() == [3, 2, 1]


def test_pair_above_the_bound_becomes_a_micro_batch_of_one():
    starts, rows = cut_sorted(np.array([4, 13]), tokens_per_microbatch=12)
    assert starts.tolist() == [0, 1]
    assert rows.tolist() == [1, 1]


def test_buckets_are_cut_evenly_and_empty_buckets_are_skipped():
    # 12 tokens allow six rows of width 2, four of width 3 or two of width 6.
    groups = fill_buckets(
        pairs=np.array([10, 11, 12, 13, 14, 15, 16]),
        bucket=np.array([2, 0, 2, 0, 2, 2, 2]),
        widths=np.array([[2, 1], [3, 3], [5, 6]]),
        tokens_per_microbatch=12,
    )
    # Two pairs form one micro-batch of width 2; five pairs form ceil(5 / 2) = 3
    # micro-batches of 1, 2 and 2 pairs.
    assert groups.order.tolist() == [11, 13, 10, 12, 14, 15, 16]
    assert groups.starts.tolist() == [0, 2, 3, 5]
    assert groups.counts.tolist() == [2, 1, 2, 2]
    assert groups.shapes.tolist() == [[2, 2, 1], [2, 5, 6], [2, 5, 6], [2, 5, 6]]
