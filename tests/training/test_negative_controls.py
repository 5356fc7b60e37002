"""A resumed training that has lost a part of its state is noticed.

Each control restores a killed training without one part of its state. The comparison
of `tools/inject_faults.py`, which the tests of resuming use, must then find a
difference; otherwise, these tests could not show that the part is restored. The
training uses dropout, loss scaling, a moving average and validations, and skips its
first step. It is killed two steps after its last checkpoint; the second epoch begins
after four steps.
"""

import io
import os
import shutil
from contextlib import chdir
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from inject_faults import TIMES, compare

from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.layers.seeded_dropout import dropout_seed
from t2t_repro.runs import checkpoints
from t2t_repro.runs.checkpoint_rotation import keep_best
from t2t_repro.runs.tensor_file import copy_to_host
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import make_batching_config
from t2t_repro.training.schedules import Schedule
from tests.training import toy

pytestmark = pytest.mark.medium

HPARAMS = toy.HPARAMS.replace(
    precision="float16",  # Of the loss scale; the model computes in float32.
    ema_decay=0.9,
    train_steps=8,
    checkpoint_steps=3,
    eval_steps=2,
)
SAVED, KILLED, NEVER = 3, 5, 1000
BLEU = {2: 30.0, 4: 20.0, 6: 10.0, 8: 25.0}
BIAS = "decoder/layer_0/feed_forward/output/bias"
RATE = Schedule.__call__


def random_pairs():
    rng = np.random.default_rng(0)
    sides = toy.side(rng, 26), toy.side(rng, 26)
    return EncodedPairs.from_lists(*([row[row > 0] for row in each] for each in sides))


PAIRS = random_pairs()


class KilledError(Exception):
    """Ends a training like SIGKILL: nothing is saved after it."""


class Training:
    """A training in the current folder. All runs share one compiled step.

    Attributes:
        loop: Training loop.
        schedule_start: int32 (), step from which the schedule counts.
        dropout_run: int32 (), added to the seed of dropout.
        order_seed: Seed of the order of the data.
        first_batch: Number of the first batch; None for the loop's step.
    """

    def __init__(self):
        self.schedule_start, self.dropout_run = tf.Variable(0), tf.Variable(0)
        self.loop = toy.loop(Path("checkpoints"), HPARAMS)
        self.variables = self.loop.weights | self.loop.state
        self.initial = copy_to_host(self.variables)

    def begin(self):
        """Restores as a new process would; returns the step of the checkpoint."""
        self.schedule_start.assign(0)
        self.dropout_run.assign(0)
        self.order_seed, self.first_batch = HPARAMS.seed, None
        self.loop.data = "some data"
        self.reset(*KINDS)
        return self.loop.restore()

    def reset(self, *kinds):
        """Assigns the initial values to all variables of some kinds."""
        for name, value in self.initial.items():
            if kind_of(name) in kinds:
                self.variables[name].assign(value)

    def run(self, killed=NEVER):
        """Trains to the last step, or until the step `killed` requests its batch."""
        loop, last = self.loop, HPARAMS.train_steps
        monitor = Monitor(Path(), last, loop.step, io.StringIO(), loop.unreported)

        def validate(step):
            keep_best(Path("best_bleu"), 1, step, loop.weights, BLEU[step], "val")
            monitor.record_validation(step, 100 - BLEU[step], BLEU[step])

        assert loop.run(partial(self._batches, killed=killed), monitor, validate)

    def _batches(self, step, killed):
        """Yields the batches from a step on; the loss of step 0 is not finite."""
        first = step if self.first_batch is None else self.first_batch
        config = make_batching_config(HPARAMS)
        for number, batch in enumerate(
            pipeline.batches(PAIRS, config, self.order_seed, first), step
        ):
            if number == killed:
                self.loop.read_result()  # A new process has no pending result.
                raise KilledError
            if number == 0:
                self.variables[BIAS].assign(np.full([HPARAMS.d_model], np.inf))
            yield batch
            if number == 0:
                self.variables[BIAS].assign(self.initial[BIAS])


def kind_of(name):
    """Returns the kind of a variable of the training; "weights" for a weight."""
    if name.startswith("loss_scale/"):
        return name
    first = name.partition("/")[0]
    return first if first in KINDS else "weights"


def drop_number_of_skipped_steps(training):
    (saved,) = checkpoints.list_checkpoints(training.loop.checkpoint_dir)
    assert saved.meta()["skipped"] == 1
    checkpoints.write_meta(saved.path, saved.meta() | {"skipped": 0})
    training.begin()


KINDS = ("weights", "m", "v", "ema", "ema_weight")
KINDS += ("loss_scale/scale", "loss_scale/finite_updates")
CONTROLS = {kind: lambda training, kind=kind: training.reset(kind) for kind in KINDS}
CONTROLS |= {
    "step": lambda training: setattr(training.loop, "step", 0),
    "schedule": lambda training: training.schedule_start.assign(SAVED),
    "data position": lambda training: setattr(training, "first_batch", 0),
    "order seed": lambda training: setattr(training, "order_seed", 2),
    "dropout seed": lambda training: training.dropout_run.assign(1),
    "unreported": lambda training: setattr(training.loop, "unreported", []),
    "skipped": drop_number_of_skipped_steps,
    "data": lambda training: setattr(training.loop, "data", None),
    "best checkpoint": lambda _: shutil.rmtree("best_bleu"),
    "validations": lambda _: os.unlink("validation_log.tsv"),
    "log": lambda _: os.unlink("training_log.tsv"),
}


@pytest.fixture(scope="module")
def training():
    training = Training()

    def rate(schedule, step):
        return RATE(schedule, step - training.schedule_start)

    def seeded(seed):
        return dropout_seed(seed + tf.stack([0, training.dropout_run]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Schedule, "__call__", rate)
        patch.setattr("t2t_repro.training.step.dropout_seed", seeded)
        patch.setattr("t2t_repro.training.monitor.LOG_STEPS", 2)
        yield training


@pytest.fixture(scope="module")
def trained(training, tmp_path_factory):
    """Model directories of an uninterrupted and of a killed training."""
    whole, killed = (tmp_path_factory.mktemp(name) for name in ("whole", "killed"))
    with chdir(whole):
        assert training.begin() == 0
        training.run()
    with chdir(killed):
        assert training.begin() == 0
        with pytest.raises(KilledError):
            training.run(KILLED)
    assert toy.steps_saved(killed / "checkpoints") == [SAVED]
    return whole, killed


def resume(training, trained, folder, drop=lambda _: None):
    """Resumes a copy of the killed training; returns the result of `compare`."""
    whole, killed = trained
    shutil.copytree(killed, folder)
    with chdir(folder):
        assert training.begin() == SAVED
        drop(training)
        training.run()
    return compare(whole, folder)


def test_a_complete_restore_is_identical(training, trained, tmp_path):
    compared, different = resume(training, trained, tmp_path / "resumed")
    assert different == []
    # Of steps 3 (without state), 6 and 8, and of the best one.
    weights, state = len(training.loop.weights), len(training.loop.state)
    assert compared == 4 * weights + 2 * state


@pytest.mark.parametrize("part", CONTROLS)
def test_a_restore_without_one_part_is_noticed(training, trained, tmp_path, part):
    _, different = resume(training, trained, tmp_path / "resumed", CONTROLS[part])
    assert different


def test_every_part_of_a_checkpoint_has_a_control(trained):
    (saved,) = checkpoints.list_checkpoints(trained[1] / "checkpoints")
    kinds = {kind_of(name) for name in saved.tensors("optimizer").shapes()}
    assert {"weights", *kinds} == set(KINDS)
    assert saved.meta().keys() - {*TIMES} <= CONTROLS.keys()
