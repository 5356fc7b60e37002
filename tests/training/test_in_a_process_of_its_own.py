"""Tests of XLA compilation and deterministic operations, in processes of their own."""

import hashlib
import json
import re

import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.models.halves import HALVES
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from tests import forks
from tests.training import toy

pytestmark = pytest.mark.medium


def train(replicas, xla, deterministic):
    """Runs forty steps: on one batch, or alternating between one batch per replica.

    Each batch has two micro-batches of different shapes. Prints the last loss, a digest
    of the weights and the shapes of each replica.
    """
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    fast.install()
    chosen = strategy.choose("mirrored" if replicas > 1 else "one_device", replicas)
    hparams = toy.HPARAMS.replace(xla=xla, max_tokens_per_device=16)
    with chosen.scope():
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None)
    batches = [toy.batch(number, 2) for number in range(replicas)]
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


def results(*calls):
    """Runs `train` with some arguments each.

    Yields:
        The last loss, a digest of the weights, the shapes of each replica, and the
        number of functions that XLA compiled.
    """
    for result in forks.run(train, *calls, **toy.LOG_OF_XLA):
        assert result.status == 0, result.err[-2000:]
        functions = len(re.findall("XlaCompiler::CompileFunction", result.err))
        yield *json.loads(result.out), functions


def test_xla_compiles_once_per_shape_and_replica():
    for _, _, pairs, functions in results((1, True, False), (2, True, False)):
        shapes = {tuple(shape) for _, *shape in pairs}
        assert 2 <= len(shapes) <= len(pairs) == functions


@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_deterministic_operations_are_bit_identical(xla):
    one, other = results((1, xla, True), (1, xla, True))
    assert one == other
    assert 0 < one[0] < 3.4  # The loss of a uniform distribution is log(30).
