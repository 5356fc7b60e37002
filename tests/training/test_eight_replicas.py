"""Eight devices learn what one does, with as many parts, fewer, and far fewer."""

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
# Three updates; the parts of a batch have one of two shapes.
UPDATES = """
import json, sys
import numpy as np
import tensorflow as tf
from t2t_repro import fast
from t2t_repro.batches.packed_batch import pack
from t2t_repro.models.precision import mixed_precision
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from tests.training import toy

replicas, parts, precision, xla = json.loads(sys.argv[1])
chosen = strategy.choose("mirrored", replicas)
fast.install()
# Without dropout, for the rows of a part that is cut have masks of their own.
hparams = toy.HPARAMS.replace(
    dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0,
    max_tokens_per_device=16, precision=precision, xla=xla,
)
found = {}
for count in parts:
    with chosen.scope(), mixed_precision(precision):
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None)
    for step in range(3):
        sides = [toy.rectangle(10 * step + i, rows=4 - i % 2) for i in range(count)]
        result = loop._update(pack(*sides), tf.constant(step)).numpy()
        found[f"{count} result {step}"] = result
    for name, weight in loop.weights.items():
        found[f"{count} {name}"] = weight.numpy()
np.savez(sys.stdout.buffer, **found)
"""


def updates(replicas, parts, precision, xla):
    """Returns what every update reports and what weights become, by name."""
    given = json.dumps([replicas, parts, precision, xla])
    done = subprocess.run(
        [sys.executable, "-c", UPDATES, given],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return dict(np.load(io.BytesIO(done.stdout)))


@pytest.mark.medium
def test_in_float32():
    one, eight = (updates(replicas, PARTS, "float32", False) for replicas in (1, 8))
    assert len(one) > 60
    for name, expected in one.items():
        np.testing.assert_allclose(eight[name], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@needs("bfloat16")
def test_compiled_in_bfloat16():
    one, eight = (updates(replicas, PARTS, "bfloat16", True) for replicas in (1, 8))
    for name, expected in one.items():
        # Where parts are cut, sums over rows are rounded elsewhere, to eight bits; a
        # bias is nothing but three updates, in which Adam divides gradient by gradient.
        allowed = 2.0**-6 if name.startswith("3 ") else 1e-5
        found = np.linalg.norm(eight[name] - expected) / np.linalg.norm(expected)
        assert found <= allowed, name
