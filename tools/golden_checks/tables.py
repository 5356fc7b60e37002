"""Checks of tabulated functions, such as learning rates, sinusoids and losses."""

from __future__ import annotations

import re

import numpy as np
import tensorflow as tf

from golden_checks.rounding import POSITION
from golden_checks.sheet import Sheet, largest_magnitude
from golden_checks.t2t_batching import t2t_batching
from t2t_repro.decoding.stopping import length_penalty
from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.interop.tensor2tensor.hparams import translate_hparams
from t2t_repro.layers.position import sinusoid
from t2t_repro.training.losses import smoothed_cross_entropy
from t2t_repro.training.schedules import Schedule

RATE = 16
"""Roundings of a learning rate: up to four factors of up to four operations each."""

PENALTY = 4
"""Roundings of a length penalty: sum, quotient, and logarithm and exponential of the
power."""

_RATE_KEYS = re.compile("hidden_size|learning_rate.*")
_BATCHING = re.compile(r"batching/(b(\d+)_m(\d+)(?:_shards(\d+))?)/boundaries")
_TIMING = re.compile(r"timing/(?:odd_|start(\d+)_)?(\d+)_(\d+)")


def check(sheet: Sheet) -> None:
    """Compares all tables of the file."""
    _check_rates(sheet)
    _check_timing(sheet)
    _check_batching(sheet)
    _check_length_penalty(sheet)
    _check_smoothing(sheet)


def _check_rates(sheet: Sheet) -> None:
    steps = sheet.take("lr/steps")
    for name in sheet.names("lr/"):
        if name == "steps":
            continue
        t2t = t2t_sets.load(name)
        # Some sets have optimizers that t2t_repro lacks; only their learning rates are
        # compared.
        values = {key: t2t[key] for key in t2t if _RATE_KEYS.fullmatch(key)}
        hparams = translate_hparams(values, vocab_size=3)
        schedule = Schedule.from_hparams(hparams)
        # tensor2tensor counts micro-batches of accumulated gradients as steps.
        count = max(int(t2t.get("optimizer_multistep_accumulate_steps") or 1), 1)
        rates = [float(schedule(tf.constant(step / count))) for step in steps]
        sheet.compare(f"lr/{name}", rates, RATE, relative=True)


def _check_timing(sheet: Sheet) -> None:
    for name in sheet.arrays:
        if match := _TIMING.fullmatch(name):
            start, length, channels = (int(part or 0) for part in match.groups())
            positions = np.arange(start, start + length)
            signal = sinusoid(positions, channels)[None]
            # The error of a sine is that of its angle, which is at most the position.
            sheet.compare(name, signal, POSITION, magnitude=start + length)


def _check_batching(sheet: Sheet) -> None:
    for name in sheet.arrays:
        if match := _BATCHING.fullmatch(name):
            configuration = match[1]
            batching = t2t_batching(int(match[2]), int(match[3]), int(match[4] or 1))
            for field, ours in batching._asdict().items():
                sheet.compare(f"batching/{configuration}/{field}", ours)


def _check_length_penalty(sheet: Sheet) -> None:
    lengths = tf.constant(sheet.take("length_penalty/lengths"))
    for name in sheet.names("length_penalty/alpha_"):
        ours = length_penalty(lengths, float(name))
        sheet.compare(f"length_penalty/alpha_{name}", ours, PENALTY, relative=True)


def _check_smoothing(sheet: Sheet) -> None:
    logits = tf.constant(sheet.take("smoothing/logits"))
    labels = tf.constant(sheet.take("smoothing/labels"), tf.int32)
    mask = np.asarray(labels) != 0
    for name in sheet.names("smoothing/xent_"):
        losses = smoothed_cross_entropy(logits, labels, float(name)) * mask
        # A loss is a sum over the vocabulary; `num` is the sum of all losses.
        vocab_size, largest = logits.shape[-1], largest_magnitude(logits)
        sheet.compare(f"smoothing/xent_{name}", losses, vocab_size, magnitude=largest)
        additions = vocab_size + mask.size
        sheet.compare(f"smoothing/num_{name}", tf.reduce_sum(losses), additions)
        sheet.compare(f"smoothing/den_{name}", mask.sum())
