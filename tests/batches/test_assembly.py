"""Assignment of micro-batches to batches; expected values computed by hand."""

import numpy as np

from t2t_repro.batches.assembly import deal, fewest_batches


def test_number_of_batches_keeps_the_bound_in_the_worst_deal():
    sizes = np.array([3, 9, 5, 8, 4, 7])
    # 36 positions need at least two batches of 20. With two batches, the rounds deal
    # (9, 8), (7, 5) and (4, 3). In the worst case one batch gets the largest of each
    # round: 9 + 7 + 4 = 20 positions.
    assert fewest_batches(sizes, 20) == 2
    # With three batches, the rounds are (9, 8, 7) and (5, 4, 3); the worst case is
    # 9 + 5 = 14.
    assert fewest_batches(sizes, 19) == 3
    assert fewest_batches(sizes, 13) == 4  # Rounds (9, 8, 7, 5), (4, 3).
    assert fewest_batches(sizes, 9) == 6


def test_each_round_deals_the_largest_remaining_micro_batches():
    sizes = np.array([3, 9, 5, 8, 4, 7])
    microbatches, firsts = deal(sizes, 2, np.random.default_rng(1))
    assert firsts.tolist() == [0, 3]
    rounds = sizes[microbatches].reshape(2, 3).T
    assert [sorted(row) for row in rounds.tolist()] == [[8, 9], [5, 7], [3, 4]]


def test_last_round_may_be_incomplete():
    microbatches, firsts = deal(np.array([6, 6, 6, 2]), 3, np.random.default_rng(1))
    assert sorted(microbatches.tolist()) == [0, 1, 2, 3]
    assert sorted(np.diff(firsts, append=4).tolist()) == [1, 1, 2]


def test_deals_are_random_in_composition_and_order():
    sizes = np.array([5, 5, 5, 4, 4, 4, 3, 3, 3])
    deals = {
        tuple(deal(sizes, 3, np.random.default_rng(seed))[0].tolist())
        for seed in range(200)
    }
    # 200 draws from 3! x 3! x 3! = 216 deals give 216 (1 - e^(-200/216)) = 130 distinct
    # deals on average.
    assert 110 < len(deals) < 150
