"""Property tests: every pair is in exactly one batch, and batches keep their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.batches.batching import (
    BatchingConfig,
    plan_epoch,
    plan_evaluation,
)
from t2t_repro.system.errors import UserError
from tests import properties

LENGTHS = st.lists(
    st.tuples(st.integers(1, 70), st.integers(1, 70)), min_size=1, max_size=120
).map(np.array)
CONFIGS = st.builds(
    BatchingConfig,
    tokens_per_batch=st.integers(8, 400),
    kind=st.sampled_from(["sorted", "buckets"]),
    max_length=st.integers(1, 80),
    tokens_per_microbatch=st.integers(0, 400),
    max_shapes=st.integers(1, 12),
    microbatches_per_shape=st.integers(0, 3),
)


@properties.checked
@given(
    lengths=LENGTHS, config=CONFIGS, seed=st.integers(0, 2**31), epoch=st.integers(0, 9)
)
def test_epoch_contains_every_usable_pair_once_within_all_bounds(
    lengths, config, seed, epoch
):
    bound = min(config.tokens_per_microbatch or 400, config.tokens_per_batch)
    longest = min(config.max_length, bound)
    usable = np.flatnonzero(lengths.max(axis=1) <= longest).tolist()
    if not usable:
        with pytest.raises(UserError, match="has a side of more than"):
            plan_epoch(lengths, config, seed, epoch)
        return
    plan = plan_epoch(lengths, config, seed, epoch)
    batches = [plan.indices(batch).tolist() for batch in range(plan.batches)]
    assert sorted(pair for batch in batches for pair in batch) == usable
    assert plan.dropped == len(lengths) - len(usable)
    for batch, pairs in enumerate(batches):
        microbatches = plan.microbatch_range(batch)
        shapes, counts = plan.shapes[microbatches], plan.counts[microbatches]
        sides = shapes[:, :1] * shapes[:, 1:]
        assert (sides <= bound).all()
        assert (sides.sum(axis=0) <= config.tokens_per_batch).all()
        assert ((counts >= 1) & (counts <= shapes[:, 0])).all()
        assert (lengths[pairs] <= np.repeat(shapes[:, 1:], counts, axis=0)).all()
    again = plan_epoch(lengths, config, seed, epoch)
    np.testing.assert_array_equal(again.order, plan.order)
    np.testing.assert_array_equal(again.shapes, plan.shapes)
    np.testing.assert_array_equal(again.firsts, plan.firsts)
    # Resuming requires the same number of batches in every epoch.
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
        assert len(batch) == rows
        assert rows == 1 or rows * max(source, target) <= config.microbatch_bound
