"""Tests of the choice of XLA and of the number of shapes by expected time."""

from dataclasses import replace

import numpy as np
import pytest

from t2t_repro import hparams
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.training import compilation
from t2t_repro.training.compilation import training_seconds
from t2t_repro.training.devices import Gpus

H200 = Gpus("H200", (9, 0), 141 * 10**9)
# Token ratios of newstest with 25,000 positions per batch.
NEWSTEST = {4: 0.62, 8: 0.80, 12: 0.85, 16: 0.87, 24: 0.90, 32: 0.91, 48: 0.929}


def resolved(name, steps, ratios=NEWSTEST, gpus=H200, replicas=1, **changes):
    requested = hparams.load(name).replace(**({"precision": "bfloat16"} | changes))
    return compilation.resolve(requested, ratios, steps, replicas, gpus)


def test_total_time_is_compilation_and_steps_with_padding():
    # 16 shapes of 60 s; 1,000 * 0.9 / 0.75 steps of 0.5 s.
    ratios = {16: 0.75, 48: 0.9}
    seconds = training_seconds(1000, 0.5, 60, ratios)
    assert seconds == pytest.approx({16: 960 + 600, 48: 2880 + 500})


@pytest.mark.parametrize(
    ("steps", "shapes"),
    [
        (0, 4),
        # 4 shapes: 240 + 149.8 s; 8 shapes: 480 + 116.1 s.
        (1_000, 4),
        # 4: 240 + 1,498.4 s; 8: 480 + 1,161.3 s; 12: 720 + 1,092.9 s.
        (10_000, 8),
        # 16: 960 + 32,034.5 s; 24: 1,440 + 30,966.7 s; 32: 1,920 + 30,626.4 s.
        (300_000, 24),
        (3_000_000, 48),
    ],
)
def test_more_steps_pay_for_more_shapes(steps, shapes):
    seconds = training_seconds(steps, 0.1, 60, NEWSTEST)
    assert min(seconds, key=seconds.get) == shapes


def test_token_ratios_are_those_of_the_plan():
    lengths = np.random.default_rng(1).integers(2, 40, (3000, 2))
    config = BatchingConfig(1000, "buckets", 40, 500)
    ratios = compilation.token_ratios(lengths, config, (2, 48))
    for shapes, ratio in ratios.items():
        plan = plan_epoch(lengths, replace(config, max_shapes=shapes), 7, 3)
        assert plan.distinct_shapes == shapes
        assert plan.token_ratio == ratio
    assert sorted(ratios)[0] == 2
    assert ratios[2] < max(ratios.values())


def test_a_large_corpus_is_estimated_from_a_sample(monkeypatch):
    lengths = np.random.default_rng(1).integers(2, 40, (3000, 2))
    config = BatchingConfig(1000, "buckets", 40, 500)
    (whole,) = compilation.token_ratios(lengths, config, (4,)).values()
    monkeypatch.setattr(compilation, "SAMPLE", 1000)
    (estimate,) = compilation.token_ratios(lengths, config, (4,)).values()
    assert estimate != whole
    assert estimate == pytest.approx(whole, rel=0.03)


def test_time_of_a_step_agrees_with_the_measurement():
    """A step of big with 12,480 positions took 50.45 ms on an H200."""
    values = hparams.load("big").replace(tokens_per_batch=12_480, precision="bfloat16")
    one = compilation.step_seconds(values, 1, H200)
    assert one == pytest.approx(0.05045, rel=0.05)
    assert compilation.step_seconds(values, 8, H200) == pytest.approx(one / 8)
    float32 = values.replace(precision="float32")
    assert compilation.step_seconds(float32, 1, H200) == pytest.approx(2 * one)
    a100 = Gpus("A100", (8, 0), 40 * 10**9)
    slower = compilation.step_seconds(values, 1, a100)
    assert slower == pytest.approx(one * 989 / 312)


@pytest.mark.parametrize(
    ("name", "hardware", "measured"),
    [("tiny", H200, 40), ("big", H200, 60), ("tiny", None, 3), ("base", None, 7)],
)
def test_time_of_a_compilation_agrees_with_the_measurement(name, hardware, measured):
    assert compilation.compile_seconds(hparams.load(name), hardware) == measured


def test_xla_is_chosen_if_it_saves_more_than_it_costs():
    chosen, line = resolved("big", 300_000)
    assert (chosen.xla, chosen.max_shapes) == (True, 24)
    assert line == (
        "max_shapes 24, max_tokens_per_device 4,096, rows_multiple 1, xla true: chosen "
        "for 300,000 steps, of about 0.1 s each, and 60 s to compile a shape"
    )
    # 0.2 s, 1,000 times, are 200 s, less than four shapes.
    chosen, line = resolved("big", 1_000)
    assert (chosen.xla, chosen.max_shapes) == (False, 48)
    assert "max_shapes 48" in line
    assert "xla false" in line
    # With one shape, 60 s are less.
    for steps, xla in ((1_000, True), (200, False)):
        chosen, _ = resolved("big", steps, {1: 0.948})
        assert chosen.xla == xla


def test_gain_agrees_with_the_measurement():
    """A step of big, 12,480 positions, took 161 and, with XLA, 52.1 ms on an H100."""
    assert pytest.approx(161 / 52.1, rel=0.05) == compilation.GAIN


def test_explicit_values_are_kept():
    chosen, line = resolved("big", 10, xla=True)
    assert (chosen.xla, chosen.max_shapes) == (True, 4)
    assert "xla" not in line
    chosen, line = resolved("big", 300_000, {5: 0.7}, max_shapes=5)
    assert chosen.max_shapes == 5
    assert "max_shapes" not in line


def test_other_batching_has_no_number_of_shapes_to_choose():
    for batching in ("sorted", "packed"):
        chosen, line = resolved("big", 9, {200: 0.98}, batching=batching, xla=True)
        assert chosen.max_shapes == 48
        assert line.startswith("max_tokens_per_device 4,096, rows_multiple 1: chosen")


def test_compilation_is_announced_with_its_time():
    big = hparams.load("big")
    assert compilation.announcement(big, 1, H200) == (
        "XLA compiles 1 shape of micro-batches on first use, about 60 s: the first "
        "steps are slow"
    )
    text = compilation.announcement(big, 24, H200)
    assert "24 shapes of micro-batches on first use, about 24 min:" in text
