"""Micro-batches chosen for several devices keep all of them busy."""

import numpy as np
import pytest

from t2t_repro.batches.batching import BatchingConfig, plan_epoch


@pytest.fixture(scope="module")
def lengths():
    """Lengths of 400,000 pairs, log-normally distributed around 30 tokens."""
    rng = np.random.default_rng(27)
    source = np.exp(rng.normal(3.2, 0.62, 400_000))
    target = source * np.exp(rng.normal(0.03, 0.2, 400_000))
    return np.clip(np.stack([source, target], 1), 2, 400).astype(np.int32)


def busy(plan, devices):
    """Returns the utilization of the devices, from 0 to 1.

    This is the number of positions in all micro-batches, divided by the number if every
    device were as busy as the busiest one of the same batch. As in `TrainStep`, device
    i takes micro-batches i, i + devices, ...; if a batch has fewer micro-batches than
    devices, its micro-batches are sliced by rows.
    """
    useful = possible = 0
    for batch in range(plan.batches):
        rows, *widths = plan.shapes[plan.microbatch_range(batch)].T
        wide = np.maximum(*widths)
        cuts = max(devices // len(rows), 1)
        pieces = np.repeat(-(-rows // cuts) * wide, cuts)
        useful += int((rows * wide).sum())
        busiest = max(pieces[device::devices].sum() for device in range(devices))
        possible += int(busiest) * devices
    return useful / possible


@pytest.mark.medium
@pytest.mark.parametrize(
    ("tokens_per_batch", "devices", "microbatches", "least"),
    [
        (25_000, 1, 1, 0.98),
        (25_000, 2, 2, 0.98),
        (25_000, 4, 4, 0.98),
        (25_000, 8, 8, 0.98),
        # Recommended in docs/how_to/devices.md for 64 devices.
        (400_000, 64, 64, 0.95),
        (800_000, 64, 64, 0.95),
    ],
)
def test_nearly_all_devices_are_busy(
    lengths, tokens_per_batch, devices, microbatches, least, record_property
):
    bound = tokens_per_batch // microbatches
    plan = plan_epoch(
        lengths,
        BatchingConfig(tokens_per_batch, "buckets", 256, bound, rows_multiple=8),
        seed=1,
        epoch=0,
    )
    assert not (plan.shapes[:, 0] % 8).any()
    assert (plan.shapes[:, 0] * plan.shapes[:, 1:].max(axis=1)).max() <= bound
    assert np.diff(plan.firsts, append=plan.microbatches).max() <= microbatches
    assert np.array_equal(np.sort(plan.order), np.flatnonzero(lengths.max(1) <= 256))
    # Without `rows_multiple`, the ratio is 90.8 %.
    assert plan.token_ratio > 0.9
    utilization = busy(plan, devices)
    record_property("busy", utilization)
    assert utilization >= least


def test_micro_batches_of_cpu_size_do_not_keep_eight_devices_busy(lengths):
    plan = plan_epoch(lengths, BatchingConfig(25_000, "buckets", 256, 3571), 1, 0)
    assert busy(plan, 8) < 0.9


def test_rows_are_a_multiple_where_the_bound_allows_it():
    lengths = np.repeat([[3, 4], [20, 25], [5, 5]], [50, 9, 70], axis=0)
    for kind in ("sorted", "buckets"):
        for bound in (100, 400):
            config = BatchingConfig(400, kind, 30, bound, rows_multiple=8)
            plan = plan_epoch(lengths, config, 1, 0)
            assert sorted(plan.order.tolist()) == list(range(129))
            assert (plan.counts <= plan.shapes[:, 0]).all()
            wide = plan.shapes[:, 1:].max(axis=1)
            assert (plan.shapes[:, 0] * wide <= bound).all()
            many = bound // wide >= 8
            if kind == "buckets" or bound == 100:
                assert not (plan.shapes[many, 0] % 8).any()
