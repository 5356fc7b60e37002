"""Whatever the lengths, every pair is in exactly one batch, and no batch too large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.data.batching import (
    KINDS,
    BatchingConfig,
    plan_epoch,
    plan_evaluation,
)
from t2t_repro.errors import UserError
from tests import properties

LENGTHS = st.lists(
    st.tuples(st.integers(1, 70), st.integers(1, 70)), min_size=1, max_size=120
).map(np.array)
CONFIGS = st.builds(
    BatchingConfig,
    tokens_per_batch=st.integers(8, 400),
    kind=st.sampled_from(KINDS),
    max_length=st.integers(1, 80),
    rows_multiple=st.integers(1, 8),
    max_shapes=st.integers(1, 12),
    batches_per_shape=st.integers(0, 3),
)


@properties.checked
@given(
    lengths=LENGTHS, config=CONFIGS, seed=st.integers(0, 2**31), epoch=st.integers(0, 9)
)
def test_an_epoch_has_every_usable_pair_once_within_every_bound(
    lengths, config, seed, epoch
):
    longest = min(config.max_length, config.tokens_per_batch // config.rows_multiple)
    usable = np.flatnonzero(lengths.max(axis=1) <= longest).tolist()
    if not usable:
        with pytest.raises(UserError, match="none of"):
            plan_epoch(lengths, config, seed, epoch)
        return
    plan = plan_epoch(lengths, config, seed, epoch)
    batches = [plan.indices(batch).tolist() for batch in range(plan.batches)]
    assert sorted(pair for batch in batches for pair in batch) == usable
    assert plan.dropped == len(lengths) - len(usable)
    for batch, (rows, source, target) in zip(
        batches, plan.shapes.tolist(), strict=True
    ):
        assert 1 <= len(batch) <= rows
        assert rows % config.rows_multiple == 0
        assert rows * max(source, target) <= config.tokens_per_batch
        assert (lengths[batch] <= [source, target]).all()
    again = plan_epoch(lengths, config, seed, epoch)
    np.testing.assert_array_equal(again.order, plan.order)
    np.testing.assert_array_equal(again.shapes, plan.shapes)
    # A place in the data is found by a division.
    assert plan_epoch(lengths, config, seed, epoch + 1).batches == plan.batches


@properties.checked
@given(lengths=LENGTHS, config=CONFIGS)
def test_evaluation_reads_every_pair_once(lengths, config):
    plan = plan_evaluation(lengths, config)
    batches = [plan.indices(batch).tolist() for batch in range(plan.batches)]
    everything = sorted(pair for batch in batches for pair in batch)
    assert everything == list(range(len(lengths)))
    for batch, (rows, source, target) in zip(
        batches, plan.shapes.tolist(), strict=True
    ):
        assert (lengths[batch] <= [source, target]).all()
        alone = len(batch) == 1 or rows == config.rows_multiple
        assert alone or rows * max(source, target) <= config.tokens_per_batch
