"""Tests that training on eight replicas equals training on one device."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.run_command import ROOT
from tests.sixteen_bits import needs

PARTS = (8, 7, 3)
# Runs three steps; micro-batches have one of two shapes.
PROGRAM = """
import json, sys
import numpy as np
import tensorflow as tf
from t2t_repro import fast
from t2t_repro.models.precision import mixed_precision
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from tests.training import toy

replicas, parts, precision, xla = json.loads(sys.argv[1])
chosen = strategy.choose("mirrored", replicas)
fast.install()
# Without dropout, because the masks of a sliced micro-batch depend on the slicing.
hparams = toy.HPARAMS.replace(
    dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0,
    max_tokens_per_device=16, precision=precision, xla=xla,
)
values = {}
for count in parts:
    with chosen.scope(), mixed_precision(precision):
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None)
    for step in range(3):
        sides = [toy.rectangle(10 * step + i, rows=4 - i % 2) for i in range(count)]
        result = loop._update(toy.pack(*sides), tf.constant(step)).numpy()
        values[f"{count} result {step}"] = result
    for name, weight in loop.weights.items():
        values[f"{count} {name}"] = weight.numpy()
np.savez(sys.stdout.buffer, **values)
"""


def updates(replicas, parts, precision, xla):
    """Returns the results of all steps and the final weights, by name."""
    settings = json.dumps([replicas, parts, precision, xla])
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, settings],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()[-2000:]
    return dict(np.load(io.BytesIO(process.stdout)))


@pytest.mark.medium
def test_float32_on_eight_replicas_equals_one():
    one, eight = (updates(replicas, PARTS, "float32", False) for replicas in (1, 8))
    assert len(one) > 60
    for name, expected in one.items():
        np.testing.assert_allclose(eight[name], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@needs("bfloat16")
def test_compiled_bfloat16_on_eight_replicas_equals_one():
    one, eight = (updates(replicas, PARTS, "bfloat16", True) for replicas in (1, 8))
    for name, expected in one.items():
        # Sums over rows are rounded to eight bits, so slicing a micro-batch changes
        # them. A bias is the sum of three Adam steps and has their relative error.
        tolerance = 2.0**-6 if name.startswith("3 ") else 1e-5
        error = np.linalg.norm(eight[name] - expected) / np.linalg.norm(expected)
        assert error <= tolerance, name
