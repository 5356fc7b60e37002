"""Tests of XLA compilation and deterministic operations, in subprocesses."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.run_command import ROOT

pytestmark = pytest.mark.medium

# Runs forty steps: on one batch if deterministic, otherwise alternating between two.
# Each batch has two micro-batches.
PROGRAM = """
import hashlib, json, sys
import tensorflow as tf
from t2t_repro import fast
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.models.halves import HALVES
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from tests.training import toy

replicas, xla, deterministic = json.loads(sys.argv[1])
if deterministic:
    tf.config.experimental.enable_op_determinism()
fast.install()
chosen = strategy.choose("mirrored" if replicas > 1 else "one_device", replicas)
hparams = toy.HPARAMS.replace(xla=xla, max_tokens_per_device=16)
with chosen.scope():
    model = toy.model(hparams)
loop = TrainingLoop(model, hparams, chosen, None)
batches = [toy.batch(step, 2) for step in range(1 if deterministic else 2)]
for step in range(40):
    loss = loop._update(batches[step % len(batches)], tf.constant(step))[0]
pairs = set()
for batch in batches:
    for part in range(len(batch["inputs"])):
        inputs, targets = rectangle(batch, part)
        rows = -(-len(inputs) // HALVES)
        pairs.add((part % replicas, rows, inputs.shape[1], targets.shape[1]))
bits = b"".join(weight.numpy().tobytes() for weight in loop.weights.values())
digest = hashlib.sha256(bits).hexdigest()
print(json.dumps([float(loss), digest, sorted(pairs)]))
"""


def updates(replicas=1, xla=False, deterministic=False):
    """Runs the program in a subprocess.

    Returns:
        The last loss, a digest of the weights, the shapes of each replica, and the
        number of functions that XLA compiled.
    """
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([replicas, xla, deterministic])],
        cwd=ROOT,
        # Makes XLA's compiler log each function.
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "0",
            "TF_CPP_VMODULE": "xla_compiler=1",
        },
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    functions = len(re.findall("XlaCompiler::CompileFunction", process.stderr))
    return *json.loads(process.stdout), functions


@pytest.mark.parametrize("replicas", [1, 2])
def test_xla_compiles_once_per_shape_and_replica(replicas):
    _, _, pairs, functions = updates(replicas, xla=True)
    shapes = {tuple(shape) for _, *shape in pairs}
    assert 2 <= len(shapes) <= len(pairs) == functions


@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_deterministic_operations_are_bit_identical(xla):
    one, other = (updates(xla=xla, deterministic=True) for _ in range(2))
    assert one == other
    assert 0 < one[0] < 3.4  # The loss of a uniform distribution is log(30).
