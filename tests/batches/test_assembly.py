"""How parts are dealt to batches, against deals made by hand."""

import numpy as np

from t2t_repro.batches.assembly import deal, fewest_batches


def test_every_deal_of_so_many_batches_keeps_the_bound():
    sizes = np.array([3, 9, 5, 8, 4, 7])
    # 36 positions need two batches of 20 at least. Rounds 9 8, 7 5, 4 3: at worst
    # 9 + 7 + 4 = 20.
    assert fewest_batches(sizes, 20) == 2
    # With 19, three: rounds 9 8 7, 5 4 3, at worst 9 + 5 = 14.
    assert fewest_batches(sizes, 19) == 3
    assert fewest_batches(sizes, 13) == 4  # Rounds 9 8 7 5 and 4 3.
    assert fewest_batches(sizes, 9) == 6


def test_a_round_gives_each_batch_one_of_the_largest_parts_that_are_left():
    sizes = np.array([3, 9, 5, 8, 4, 7])
    parts, firsts = deal(sizes, 2, np.random.default_rng(1))
    assert firsts.tolist() == [0, 3]
    rounds = sizes[parts].reshape(2, 3).T
    assert [sorted(one) for one in rounds.tolist()] == [[8, 9], [5, 7], [3, 4]]


def test_the_last_round_may_leave_batches_out():
    parts, firsts = deal(np.array([6, 6, 6, 2]), 3, np.random.default_rng(1))
    assert sorted(parts.tolist()) == [0, 1, 2, 3]
    assert sorted(np.diff(firsts, append=4).tolist()) == [1, 1, 2]


def test_deals_are_random_in_members_and_order():
    sizes = np.array([5, 5, 5, 4, 4, 4, 3, 3, 3])
    deals = {
        tuple(deal(sizes, 3, np.random.default_rng(seed))[0].tolist())
        for seed in range(200)
    }
    # Of 3! x 3! x 3! = 216 deals, 200 draws find 216 (1 - e^(-200/216)) = 130.
    assert 110 < len(deals) < 150
