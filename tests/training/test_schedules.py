"""Tests of the learning rates against tensor2tensor and the formulas."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import hparams as hparam_sets
from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import field_types
from t2t_repro.training.schedules import RATES, Schedule
from tests import golden


def rates(schedule, steps):
    return [float(schedule(tf.constant(step, tf.int32))) for step in steps]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transformer_base_v1", ("paper", 1.0, 512, 4000)),
        ("transformer_base_v2", ("paper", 2.0, 512, 8000)),
        ("transformer_base", ("t2t", 2.0, 512, 8000)),
        ("transformer_big", ("t2t", 2.0, 1024, 8000)),
    ],
)
def test_rates_equal_tensor2tensor(shared_dir, name, arguments):
    arrays = golden.load(shared_dir / "t2t/golden/misc.npz")
    formula, scale, d_model, warmup_steps = arguments
    schedule = Schedule(formula, scale, d_model=d_model, warmup_steps=warmup_steps)
    ours = rates(schedule, arrays["lr/steps"])
    np.testing.assert_allclose(ours, arrays[f"lr/{name}"], rtol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("base", "transformer_base_v1"),
        ("t2t_base", "transformer_base"),
        ("t2t_big", "transformer_big"),
    ],
)
def test_sets_have_the_rates_of_tensor2tensors_sets(shared_dir, ours, theirs):
    hparams = hparam_sets.load(ours)
    schedule = Schedule.from_hparams(hparams)
    arrays = golden.load(shared_dir / "t2t/golden/misc.npz")
    np.testing.assert_allclose(
        rates(schedule, arrays["lr/steps"]), arrays[f"lr/{theirs}"], rtol=1e-6
    )


def test_paper_rate_equals_the_formula():
    # d_model 4 and 9 warm-up steps: 1/2 * min(1/sqrt(n), n/27).
    schedule = Schedule("paper", d_model=4, warmup_steps=9)
    expected = [1 / 54, 9 / 54, 0.5 * 10**-0.5]
    np.testing.assert_allclose(rates(schedule, [0, 8, 9]), expected, rtol=1e-6)


def test_t2t_rate_equals_the_formula():
    # The first step has rate 0. The peak, 1/2 * 1/3, comes one step later than in the
    # paper's form.
    schedule = Schedule("t2t", scale=2.0, d_model=4, warmup_steps=9)
    expected = [0, 2 / 54, 2 / 6, 2 * 0.5 / 4]
    np.testing.assert_allclose(rates(schedule, [0, 1, 9, 16]), expected, rtol=1e-6)


def test_rsqrt_decay_is_constant_during_the_warm_up():
    schedule = Schedule("rsqrt_decay", warmup_steps=9)
    np.testing.assert_allclose(rates(schedule, [0, 9, 16]), [1 / 3, 1 / 3, 1 / 4])


def test_marian_rate_equals_the_formula():
    # min(n / 4, sqrt(4 / n)) with n = 1, 4 and 16; also from a configuration of an
    # earlier version, in which all formulas have the setting d_model.
    schedule = Schedule.from_config(
        {"formula": "marian", "d_model": 16, "warmup_steps": 4, "scale": 0.1}
    )
    np.testing.assert_allclose(
        rates(schedule, [0, 3, 15]), [0.025, 0.1, 0.05], rtol=1e-6
    )


def test_constant_rate_grows_during_the_warm_up():
    schedule = Schedule("constant", scale=0.5, warmup_steps=4)
    np.testing.assert_allclose(rates(schedule, [0, 3, 999]), [0.125, 0.5, 0.5])
    at_once = Schedule("constant", scale=0.5, warmup_steps=1)
    np.testing.assert_allclose(rates(at_once, [0, 999]), [0.5, 0.5])


def test_inverse_sqrt_rate_falls_from_the_given_step():
    # min(n / 2, 1, sqrt(16 / n)) with n = 1, 2, 16, 64 and 1600.
    schedule = Schedule("inverse_sqrt", warmup_steps=2, decay_start_step=16)
    np.testing.assert_allclose(
        rates(schedule, [0, 1, 15, 63, 1599]), [0.5, 1, 1, 0.5, 0.1], rtol=1e-6
    )


def test_each_choice_has_a_formula():
    _, _, rule = field_types(HParams)["learning_rate_schedule"]
    assert set(rule.choices) == set(RATES)


def test_config_restores_the_schedule():
    schedule = Schedule("t2t", 0.5, d_model=16, warmup_steps=100)
    again = Schedule.from_config(schedule.get_config())
    assert rates(again, [0, 5, 200]) == rates(schedule, [0, 5, 200])
