"""Dropout drops its share, keeps the mean, and is a function of the seed."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.layers.dropout import Dropout


def drop(layer, x, *seed):
    return np.array(layer(x, tf.constant(seed, tf.int32)))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_share_and_the_mean_are_those_asked_for(rate):
    count = 200_000
    dropped = drop(Dropout(rate), np.ones(count, "float32"), 3, 4)
    # Four deviations of a share of independent draws.
    tolerance = 4 * (rate * (1 - rate) / count) ** 0.5
    assert (dropped == 0).mean() == pytest.approx(rate, abs=tolerance)
    assert dropped.mean() == pytest.approx(1, abs=tolerance / (1 - rate))
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits_drop_what_float32_drops(dtype):
    """Numbers drawn in bfloat16 would drop 13/128, five deviations too many."""
    x = np.ones(1_000_000, "float32")
    wide, narrow = (Dropout(0.1, name="a", dtype=each) for each in ("float32", dtype))
    kept = narrow(x, tf.constant([1, 2]))
    assert kept.dtype == dtype
    kept = tf.cast(kept, tf.float32).numpy()
    np.testing.assert_array_equal(kept == 0, drop(wide, x, 1, 2) == 0)
    assert (kept == 0).mean() == pytest.approx(0.1, abs=0.0012)
    assert kept.max() == pytest.approx(1 / 0.9, rel=2**-8)


def test_the_same_seed_draws_the_same_mask_in_another_layer_of_the_name():
    x = np.ones((50, 50), "float32")
    one, other = Dropout(0.5, name="a"), Dropout(0.5, name="a")
    np.testing.assert_array_equal(drop(one, x, 1, 2), drop(other, x, 1, 2))
    np.testing.assert_array_equal(drop(one, x, 1, 2), drop(one, x, 1, 2))


@pytest.mark.parametrize("seed", [(2, 2), (1, 3), (2**31 - 1, -(2**31))])
def test_steps_and_replicas_draw_masks_of_their_own(seed):
    x = np.ones(10_000, "float32")
    layer = Dropout(0.5, name="a")
    same = drop(layer, x, 1, 2) == drop(layer, x, *seed)
    assert same.mean() == pytest.approx(0.5, abs=0.03)


def test_layers_of_other_names_draw_masks_of_their_own():
    x = np.ones(10_000, "float32")
    same = drop(Dropout(0.5, name="a"), x, 1, 2) == drop(
        Dropout(0.5, name="b"), x, 1, 2
    )
    assert same.mean() == pytest.approx(0.5, abs=0.03)


def test_nothing_is_dropped_without_a_seed_or_at_rate_zero():
    x = np.arange(6.0, dtype="float32")
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(drop(Dropout(0.0), x, 1, 2), x)


def test_it_keeps_no_variables():
    layer = Dropout(0.5)
    drop(layer, np.ones(3, "float32"), 1, 2)
    assert layer.variables == []
