"""The training loop: the same for one device, many devices and many machines."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import tensorflow as tf

from t2t_repro.batches import packed_batch
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.training.checkpoint_writer import CheckpointWriter
from t2t_repro.training.monitor import Monitor, Unreported
from t2t_repro.training.non_finite_guard import NonFiniteGuard
from t2t_repro.training.profiler import Profile
from t2t_repro.training.restoring import Progress, receive, restore_newest
from t2t_repro.training.step import StepResult, TrainStep
from t2t_repro.training.workers import WorkerGoneError, Workers

Batches = Callable[[int], tf.data.Dataset]
Validate = Callable[[int], None]

# Workers ask each other whether to stop before updates whose number this divides: often
# enough for the minute or two that schedulers grant, too rarely to cost anything.
UPDATES_BETWEEN_QUESTIONS = 10


class TrainingLoop:
    """Takes a model from its newest checkpoint to the last step.

    The model is built, in the strategy's scope. Only the chief (`is_chief`) writes.
    """

    def __init__(
        self,
        model: Transformer,
        hparams: HParams,
        strategy: tf.distribute.Strategy,
        checkpoint_dir: Path,
        is_chief: bool = True,
    ) -> None:
        self.hparams = hparams
        self.checkpoint_dir = checkpoint_dir
        self.is_chief = is_chief
        self.accumulates = hparams.tokens_per_part < hparams.tokens_per_batch
        self.weights = named_variables(model)
        with strategy.scope():
            step = TrainStep(model, hparams, self.accumulates)
        self.state = step.state()
        self.workers = Workers(strategy)
        self.step = 0
        self.unreported: Unreported = []
        self._guard = NonFiniteGuard(hparams.precision)
        self._writer = CheckpointWriter(
            checkpoint_dir, hparams, self.weights, self.state, is_chief
        )
        self._read_result: Callable[[], None] | None = None  # Of the last update.

        @tf.function(
            input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)],
            autograph=False,
        )
        def update(batch: dict[str, tf.Tensor], step_number: tf.Tensor) -> tf.Tensor:
            results = strategy.run(step.replica_step, args=(batch, step_number))
            # The same on every replica; as one, to be read from a device at once.
            return tf.stack(
                [strategy.experimental_local_results(r)[0] for r in results]
            )

        self._update = update

    def restore(self, log: Callable[[str], None] = print) -> int:
        """Goes back to the newest whole checkpoint; returns its step, 0 without any.

        The chief reads it, and the other workers get it from there. See
        `restore_newest`; raises WorkerGoneError, too, if another worker is gone.
        """
        progress = Progress()
        variables = self.weights, self.state
        if self.is_chief:
            newest = restore_newest(self.checkpoint_dir, *variables, log)
            if newest is not None:
                progress = newest
                self._writer.saved_at(progress.step)
        if self.workers.are_many:
            progress = receive(progress, self.workers, *variables)
        self.step, self.unreported = progress.step, progress.unreported
        self._guard.skipped = progress.skipped
        return self.step

    def run(
        self,
        batches: Batches,
        monitor: Monitor,
        validate: Validate,
        pairs_of: Callable[[int], Iterable[int]] = lambda step: (),
        profile: Profile | None = None,
    ) -> bool:
        """Trains to the last step, or until asked to stop; says whether it got there.

        Ctrl-C and SIGTERM finish the current update (of several workers: up to
        `UPDATES_BETWEEN_QUESTIONS`) and save; a second Ctrl-C interrupts at once
        (a checkpoint that is being written is finished). `batches` gives the global
        batches from a step on. `validate` is called every ``hparams.eval_steps`` and at
        the last step. `pairs_of` gives the numbers of the sentence pairs that the
        update after a step reads, for the message when it is skipped. Raises UserError
        if too many losses or gradients in a row are not finite; WorkerGoneError if
        another worker is gone (the chief has saved).
        """
        profile = profile or Profile(self.checkpoint_dir)
        self._writer.restart_clock()
        writing = self._writer.background
        with _stop_requests() as stop_requested, writing.finished_at_end():
            left = self.step > 0 and self._validation_is_due(self.step, monitor)
            if self.workers.any(left):
                # The process before was killed while it validated.
                with monitor.pause():
                    validate(self.step)
            try:
                for begun, batch in enumerate(batches(self.step), self.step):
                    writing.check()
                    at_end = begun >= self.hparams.train_steps
                    if at_end or self._shall_stop(begun, stop_requested()):
                        break
                    with profile.update(begun + 1):
                        result = self._begin(batch, begun)
                    self.read_result()
                    self._read_result = partial(self._read, result, monitor, pairs_of)
                    self._save_and_validate(begun + 1, monitor, validate)
                self.read_result()
            except WorkerGoneError:
                # What broke off has changed nothing yet.
                with suppress(WorkerGoneError):
                    self.read_result()
                self.save(monitor, planned=self._writer.is_due(self.step))
                raise
            finally:
                profile.close()
        self.save(monitor, planned=self._writer.is_due(self.step))
        return self.step >= self.hparams.train_steps

    def read_result(self) -> None:
        """Waits for the last update and takes what it reports, unless that was done.

        The loop does so when it has begun the next one, so that a device never waits
        for the host; and before it saves, validates or ends.
        """
        read, self._read_result = self._read_result, None
        if read is not None:
            read()

    def _shall_stop(self, begun: int, asked: bool) -> bool:
        if self.workers.are_many and begun % UPDATES_BETWEEN_QUESTIONS:
            return False
        return self.workers.any(asked)

    def _begin(self, batch: dict[str, tf.Tensor], step: int) -> tf.Tensor:
        """Begins the update after so many; a GPU computes on when this returns."""
        with self.workers.gone_is_told():
            return self._update(batch, tf.constant(step))

    def _read(
        self,
        result: tf.Tensor,
        monitor: Monitor,
        pairs_of: Callable[[int], Iterable[int]],
    ) -> None:
        with self.workers.gone_is_told():
            values = StepResult(*np.asarray(result).tolist())
        step, self.step = self.step, self.step + 1
        made = self._guard.was_made(
            self.step, values, lambda: pairs_of(step), monitor.log
        )
        monitor.step_done(self.step, values if made else None)

    def _save_and_validate(
        self, step: int, monitor: Monitor, validate: Validate
    ) -> None:
        """Does what is due after so many updates."""
        save, validation = self._writer.is_due(step), self._validation_is_due(step)
        if save or validation:
            self.read_result()
            with monitor.pause():
                if save:
                    # At the end there is nothing left to go on with meanwhile.
                    self.save(monitor, wait=step == self.hparams.train_steps)
                if validation:
                    validate(step)

    def save(
        self, monitor: Monitor | None = None, planned: bool = True, wait: bool = True
    ) -> None:
        """Writes the full state; see `CheckpointWriter.save`.

        What `monitor` has not reported yet is saved, too.
        """
        unreported = monitor.unreported() if monitor else []
        meta = {"skipped": self._guard.skipped, "unreported": unreported}
        self._writer.save(self.step, meta, planned, wait)

    def _validation_is_due(self, step: int, monitor: Monitor | None = None) -> bool:
        """Says whether to validate; given a monitor, unless that was told of it."""
        every = self.hparams.eval_steps
        last = step == self.hparams.train_steps
        due = last or (every > 0 and step % every == 0)
        return due and not (monitor and monitor.was_validated(step))


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Turns SIGINT and SIGTERM into a question the loop asks between updates."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
