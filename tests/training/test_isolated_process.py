"""Tests of XLA compilation and deterministic operations, in isolated processes."""

import hashlib
import json

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
    """Runs forty steps on one batch of three micro-batches, of two shapes.

    On two replicas, both compute one of the shapes. Prints the last loss, a digest of
    the weights and the shapes of each replica.
    """
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    fast.install()
    chosen = strategy.choose("mirrored" if replicas > 1 else "one_device", replicas)
    hparams = toy.HPARAMS.replace(xla=xla, max_tokens_per_device=16)
    if not deterministic:
        # XLA compiles a step without dropout in two thirds of the time.
        hparams = hparams.replace(dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0)
    with chosen.scope():
        model = toy.model(hparams)
    loop = TrainingLoop(model, hparams, chosen, None)
    batch = toy.pack(*(toy.rectangle(number, rows=2 + number) for number in range(3)))
    for step in range(40):
        loss = loop.update(batch, tf.constant(step))[0]
    pairs = set()
    for microbatch in range(3):
        inputs, targets = rectangle(batch, microbatch)
        rows = -(-len(inputs) // HALVES)
        pairs.add((microbatch % replicas, rows, inputs.shape[1], targets.shape[1]))
    bits = b"".join(weight.numpy().tobytes() for weight in loop.weights.values())
    digest = hashlib.sha256(bits).hexdigest()
    print(json.dumps([float(loss), digest, sorted(pairs)]))


def results(folder, *calls):
    """Runs `train` with some arguments each.

    Yields:
        The last loss, a digest of the weights, the shapes of each replica, and the
        number of programs that XLA compiled.
    """
    folders = [folder / str(number) for number in range(len(calls))]
    environments = [toy.dumping_to(each) for each in folders]
    done = forks.run(train, *calls, environments=environments)
    for result, each in zip(done, folders, strict=True):
        assert result.status == 0, result.err[-2000:]
        yield *json.loads(result.out), toy.compiled(each)


def test_xla_compiles_once_per_shape_and_replica(tmp_path):
    ((_, _, pairs, programs),) = results(tmp_path, (2, True, False))
    assert len({tuple(shape) for _, *shape in pairs}) == 2
    assert len(pairs) == programs == 3


@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_deterministic_operations_are_bit_identical(tmp_path, xla):
    one, other = results(tmp_path, (1, xla, True), (1, xla, True))
    assert one == other
    assert 0 < one[0] < 3.4  # The loss of a uniform distribution is log(30).
