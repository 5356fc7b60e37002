"""The training loop: the same for one device, many devices and many machines."""

import math
import signal
import time
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
from t2t_repro.runs import checkpoint_rotation, checkpoints
from t2t_repro.system.background import Background
from t2t_repro.system.errors import UserError
from t2t_repro.training.monitor import Monitor, Unreported
from t2t_repro.training.profiler import Profile
from t2t_repro.training.step import StepResult, TrainStep
from t2t_repro.training.workers import WorkerGoneError, Workers

Batches = Callable[[int], tf.data.Dataset]
Validate = Callable[[int], None]

MOST_SKIPPED_IN_A_ROW = 10
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
        self.strategy = strategy
        self.checkpoint_dir = checkpoint_dir
        self.is_chief = is_chief
        self.accumulates = hparams.tokens_per_part < hparams.tokens_per_batch
        self.weights = named_variables(model)
        with strategy.scope():
            step = TrainStep(model, hparams, self.accumulates)
        self.state = step.state()
        self.workers = Workers(strategy)
        self.step = 0
        self.skipped = 0
        self._skipped_in_a_row = 0
        self.unreported: Unreported = []
        self._read_result: Callable[[], None] | None = None  # Of the last update.
        self._writing = Background()
        self._saved_step = -1
        self._saved_time = time.monotonic()

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

        The chief reads it, and the other workers get it from there. A damaged one is
        set aside and the one before it is taken; `log` is told. Raises UserError if
        none is whole or it belongs to another model; WorkerGoneError if another worker
        is gone.
        """
        if self.is_chief:
            self._restore_newest(log)
        if self.workers.are_many:
            self._receive()
        return self.step

    def _receive(self) -> None:
        """Makes the chief's state that of all workers."""

        def from_chief(values: list[float]) -> list[float]:
            tensor = self.workers.from_chief(tf.constant(values, tf.float64))
            return [float(value) for value in tensor]

        fields = len(StepResult.__dataclass_fields__)
        flat = [value for row in self.unreported for value in row]
        counts = from_chief([self.step, self.skipped, len(flat)])
        self.step, self.skipped, length = map(int, counts)
        flat = from_chief((flat + [0.0] * length)[:length])
        self.unreported = [flat[i : i + fields] for i in range(0, length, fields)]
        for variable in (*self.weights.values(), *self.state.values()):
            value = self.workers.from_chief(tf.convert_to_tensor(variable))
            variable.assign(value)

    def _restore_newest(self, log: Callable[[str], None]) -> None:
        damaged = []
        for checkpoint in checkpoints.full_states(self.checkpoint_dir):
            try:
                with checkpoint.held():
                    self._restore(checkpoint)
            except checkpoints.DamagedCheckpointError as error:
                log(f"damaged: {error}")
                damaged.append(checkpoint)
                continue
            for one in damaged:
                log(f"set aside as {checkpoints.set_aside(one)}")
            self.step = self._saved_step = checkpoint.step
            return
        if damaged:
            raise UserError(
                f"{self.checkpoint_dir}: no whole checkpoint is left from which the "
                "training could go on; restore one from a copy, or begin anew with "
                "another --model_dir"
            )

    def _restore(self, checkpoint: checkpoints.Checkpoint) -> None:
        checkpoints.require_whole(checkpoint)
        checkpoint.tensors("weights").assign_to(self.weights)
        checkpoint.tensors("optimizer").assign_to(self.state)
        meta = checkpoint.meta()
        try:
            self.skipped = int(meta.get("skipped", 0))
            rows = [[float(x) for x in row] for row in meta.get("unreported", ())]
            if any(len(row) != len(StepResult.__dataclass_fields__) for row in rows):
                raise ValueError
        except (TypeError, ValueError):
            raise checkpoints.DamagedCheckpointError(
                f"{checkpoint.path}: its description is not of this program"
            ) from None
        self.unreported = rows

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
        self._saved_time = time.monotonic()
        self._skipped_in_a_row = 0
        with _stop_requests() as stop_requested, self._writing.finished_at_end():
            left = self.step > 0 and self._validation_is_due(self.step, monitor)
            if self.workers.any(left):
                # The process before was killed while it validated.
                with monitor.pause():
                    validate(self.step)
            try:
                for begun, batch in enumerate(batches(self.step), self.step):
                    self._writing.check()
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
                self.save(monitor, planned=self._save_is_due(self.step))
                raise
            finally:
                profile.close()
        self.save(monitor, planned=self._save_is_due(self.step))
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
        self.step += 1
        finite = math.isfinite(values.loss) and math.isfinite(values.gradient_norm)
        self._skipped_in_a_row = 0 if finite else self._skipped_in_a_row + 1
        if not finite:
            self._tell_skipped(values, monitor, pairs_of)
        monitor.step_done(self.step, values if finite else None)

    def _save_and_validate(
        self, step: int, monitor: Monitor, validate: Validate
    ) -> None:
        """Does what is due after so many updates."""
        save, validation = self._save_is_due(step), self._validation_is_due(step)
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
        """Writes the full state, unless that of this step is there already.

        What `monitor` has not reported yet is saved, too. `planned` says whether an
        uninterrupted training would save here. Without `wait` a copy in the host's
        memory is written while the training goes on.
        """
        if self._saved_step != self.step and self.is_chief:
            self._writing.wait()  # One copy at a time.
            meta = {
                checkpoint_rotation.SAVED_AT: round(time.time(), 3),
                "skipped": self.skipped,
                "unreported": monitor.unreported() if monitor else [],
                **({} if planned else {checkpoint_rotation.UNPLANNED: True}),
            }
            weights, state = map(checkpoints.copied, (self.weights, self.state))
            write = partial(self._write, self.step, weights, state, meta)
            self._writing.start(write)
        self._saved_step = self.step
        self._saved_time = time.monotonic()
        if wait:
            self._writing.wait()

    def _write(
        self,
        step: int,
        weights: checkpoints.Arrays,
        state: checkpoints.Arrays,
        meta: dict[str, object],
    ) -> None:
        checkpoints.save(self.checkpoint_dir, step, weights, state, meta)
        checkpoint_rotation.prune(
            self.checkpoint_dir,
            self.hparams.keep_checkpoints,
            self.hparams.keep_every_hours,
        )

    def _save_is_due(self, step: int) -> bool:
        every, minutes = self.hparams.checkpoint_steps, self.hparams.checkpoint_minutes
        last = step == self.hparams.train_steps
        due_by_step = last or (every > 0 and step % every == 0)
        return due_by_step or (
            minutes > 0 and time.monotonic() - self._saved_time >= 60 * minutes
        )

    def _validation_is_due(self, step: int, monitor: Monitor | None = None) -> bool:
        """Says whether to validate; given a monitor, unless that was told of it."""
        every = self.hparams.eval_steps
        last = step == self.hparams.train_steps
        due = last or (every > 0 and step % every == 0)
        return due and not (monitor and monitor.was_validated(step))

    def _tell_skipped(
        self,
        result: StepResult,
        monitor: Monitor,
        pairs_of: Callable[[int], Iterable[int]],
    ) -> None:
        """Says which update was skipped; raises UserError after too many in a row."""
        self.skipped += 1
        what = (
            f"the loss of step {self.step} is {result.loss}, its gradient's norm "
            f"{result.gradient_norm}"
        )
        if self._skipped_in_a_row == MOST_SKIPPED_IN_A_ROW:
            raise UserError(
                f"{what}, and the {MOST_SKIPPED_IN_A_ROW - 1} updates before were "
                "skipped too: the training diverged; lower learning_rate_scale, raise "
                "warmup_steps or set clip_norm, and train anew"
            )
        pairs = ", ".join(map(str, pairs_of(self.step - 1)))
        told = f"skipped: {what}; {self.skipped:,} skipped so far"
        if self.hparams.precision == "float16":
            told += " (float16 overflows now and then; its loss scale is halved)"
        monitor.log(told + (f"; sentence pairs {pairs}" if pairs else ""))


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
