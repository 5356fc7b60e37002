"""Packed rows: every pair once, no side too long, the same shape in every epoch."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.packing import pack_rows
from t2t_repro.data.encoded_pairs import EncodedPairs
from tests import properties
from tests.batches.test_batching import random_lengths

SIDES = ("inputs", "targets")
LENGTHS = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=150
).map(np.array)
CONFIGS = st.builds(
    BatchingConfig,
    tokens_per_batch=st.integers(30, 400),
    kind=st.just("packed"),
    tokens_per_microbatch=st.integers(30, 200),
    packed_length=st.integers(30, 80),
)


def rows_of(plan):
    """Returns the pair numbers of each row with pairs, in the order of the batches."""
    rows = []
    for start, count in zip(plan.starts, plan.counts, strict=True):
        numbers = plan.order[start : start + count]
        row = plan.rows[start : start + count]
        rows += [numbers[row == n].tolist() for n in np.unique(row)]
    return rows


@pytest.mark.parametrize(
    ("sides", "row"),
    [
        # The source sides add up to two full rows. The pair of 4 and 5 tokens goes to
        # the row of 6 and 2 tokens, where the target has more room.
        ([(6, 5), (6, 2), (4, 5), (4, 4)], [1, 0, 0, 1]),
        ([(6, 4), (4, 6), (4, 6), (6, 4)], [0, 1, 0, 1]),
        # 17 tokens need two rows. The last pair does not fit next to the longest one,
        # so it waits for the third place in the other row.
        ([(8, 8), (3, 3), (3, 3), (3, 3)], [0, 1, 1, 1]),
        # 18 tokens would fill two rows, but each pair needs its own.
        ([(6, 6), (6, 6), (6, 6)], [0, 1, 2]),
        # The target sides alone need a second row.
        ([(1, 9), (1, 2)], [1, 0]),
        ([], []),
    ],
)
def test_long_pairs_come_first_and_both_sides_fill_evenly(sides, row):
    packed, rows = pack_rows(np.array(sides, int).reshape(-1, 2).T, 10)
    assert packed.tolist() == row
    assert rows == len(set(row))


@properties.checked
@given(lengths=LENGTHS, config=CONFIGS, seed=st.integers(0, 2**31))
def test_epochs_contain_every_pair_once_in_batches_of_one_shape(lengths, config, seed):
    plans = [plan_epoch(lengths, config, seed, epoch) for epoch in (0, 1)]
    width = min(config.packed_length, config.microbatch_bound)
    for plan in plans:
        rows = rows_of(plan)
        assert sorted(pair for row in rows for pair in row) == list(range(len(lengths)))
        assert max(lengths[row].sum(axis=0).max() for row in rows) <= width
        assert plan.distinct_shapes == 1
        height, *widths = plan.shapes[0]
        assert widths == [width, width]
        assert height * width <= config.microbatch_bound
        assert height == 1 or height % 2 == 0
        assert (plan.rows < height).all()
        sizes = np.diff(plan.firsts, append=plan.microbatches)
        assert set(sizes) == {config.packed_microbatches}
        assert plan.sizes.max() <= config.tokens_per_batch
        # The filler rows are spread evenly over the micro-batches.
        starts, counts = plan.starts, plan.counts
        used = [
            len(np.unique(plan.rows[start : start + count]))
            for start, count in zip(starts, counts, strict=True)
        ]
        assert max(used) - min(used) <= 1
        numbers = [plan.indices(batch) for batch in range(plan.batches)]
        assert np.concatenate(numbers).tolist() == plan.order.tolist()
    one, two = plans
    assert one.shapes.tolist() == two.shapes.tolist()
    assert one.firsts.tolist() == two.firsts.tolist()
    assert one.token_ratio == two.token_ratio


def test_epochs_differ_in_the_pairs_of_a_row_and_in_the_order_of_rows():
    lengths = random_lengths(2000, seed=8)
    config = BatchingConfig(1000, "packed", packed_length=100)
    one, again, two = (
        rows_of(plan_epoch(lengths, config, 3, epoch)) for epoch in (0, 0, 1)
    )
    assert one == again
    assert len({tuple(r) for r in one} & {tuple(r) for r in two}) < 0.05 * len(one)
    # The same lengths share a row in every epoch, but in another order of the rows.
    shapes = [[lengths[row].tolist() for row in rows] for rows in (one, two)]
    assert shapes[0] != shapes[1]
    assert sorted(shapes[0]) == sorted(shapes[1])


@pytest.mark.parametrize(
    ("tokens", "bound", "rows", "microbatches"),
    [
        (25_000, 0, 96, 1),  # 97 rows of 256 fit into 25,000 positions.
        (25_000, 12_500, 48, 2),
        (25_000, 3571, 12, 8),  # 13 rows fit, 12 is even.
        (25_000, 3125, 12, 8),
        (4096, 4096, 16, 1),
        (1000, 300, 1, 3),
        (800, 0, 2, 1),
    ],
)
def test_batch_has_as_many_rows_as_the_bounds_allow(tokens, bound, rows, microbatches):
    config = BatchingConfig(tokens, "packed", tokens_per_microbatch=bound)
    assert (config.packed_rows, config.packed_microbatches) == (rows, microbatches)
    # 500 pairs of 256 tokens need a row each.
    plan = plan_epoch(np.full((500, 2), 256), config, 1, 0)
    assert plan.batches == -(-500 // (rows * microbatches))
    assert plan.microbatches == plan.batches * microbatches
    assert plan.shapes[0, 0] <= rows


@pytest.mark.parametrize("rows", [2, 8])
@pytest.mark.parametrize("devices", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16])
def test_every_device_has_the_same_number_of_equal_micro_batches(devices, rows):
    bound = 25_000 // devices
    config = BatchingConfig(25_000, "packed", 256, bound, rows_multiple=rows)
    plan = plan_epoch(random_lengths(2000, seed=8), config, 1, 0)
    assert plan.distinct_shapes == 1
    assert set(np.diff(plan.firsts, append=plan.microbatches)) == {devices}


def test_small_corpus_has_smaller_micro_batches_instead_of_filler_rows():
    # 100 rows need two batches of up to 96 rows. Each of the four micro-batches gets
    # 25 rows, and one filler row because 25 is odd.
    config = BatchingConfig(25_000, "packed", tokens_per_microbatch=12_500)
    plan = plan_epoch(np.full((100, 2), 200), config, 1, 0)
    assert plan.shapes.tolist() == [[26, 256, 256]] * 4
    assert plan.counts.tolist() == [25] * 4
    assert plan.token_ratio == 100 * 200 / (4 * 26 * 256)
    assert "in 2 batches (4 micro-batches) of 1 shape;" in plan.summary()


def test_pairs_longer_than_a_row_are_skipped():
    config = BatchingConfig(400, "packed", packed_length=20)
    plan = plan_epoch(np.array([[20, 3], [3, 21], [4, 4]]), config, 1, 0)
    assert sorted(plan.order.tolist()) == [0, 2]
    assert plan.dropped == 1


def test_pairs_of_a_row_are_gathered_one_after_the_other():
    pairs = EncodedPairs.from_lists(
        [[5, 6, 1], [7, 1], [8, 9, 10, 1]], [[15, 1], [16, 17, 18, 1], [19, 1]]
    )
    batch = pairs.gather(np.array([1, 2, 0]), (3, 7, 6), np.array([0, 0, 2]))
    empty = [0] * 6
    assert batch["inputs"].tolist() == [
        [7, 1, 8, 9, 10, 1, 0],
        [0, *empty],
        [5, 6, 1, 0, 0, 0, 0],
    ]
    assert batch["targets"].tolist() == [
        [16, 17, 18, 1, 19, 1],
        empty,
        [15, 1, 0, 0, 0, 0],
    ]


def test_gathered_rows_equal_those_of_tensor2tensor(shared_dir):
    path = shared_dir / "t2t" / "golden" / "packing_and_trees.json"
    golden = json.loads(path.read_text(encoding="utf-8"))
    examples = [(e["inputs"], e["targets"]) for e in golden["examples"]]
    pairs = EncodedPairs.from_lists(*zip(*examples, strict=True))
    numbers, rows = [], []
    for row, packed in enumerate(golden["packed"]):
        ends = (np.flatnonzero(np.equal(packed[s], 1)) + 1 for s in SIDES)
        sides = [np.split(packed[s], e)[:-1] for s, e in zip(SIDES, ends, strict=True)]
        for source, target in zip(*sides, strict=True):
            numbers.append(examples.index((source.tolist(), target.tolist())))
            rows.append(row)
    assert sorted(numbers) == list(range(len(examples)))
    width = golden["packed_length"]
    shape = (len(golden["packed"]), width, width)
    batch = pairs.gather(np.array(numbers), shape, np.array(rows))
    for side in SIDES:
        for ids, packed in zip(batch[side].tolist(), golden["packed"], strict=True):
            assert ids == packed[side] + [0] * (width - len(packed[side]))
