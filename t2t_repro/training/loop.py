"""Training loop for one device, several devices and several machines."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.batches import packed_batch
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.training.checkpoint_writer import CheckpointWriter
from t2t_repro.training.monitor import Monitor, Unreported
from t2t_repro.training.non_finite_guard import NonFiniteGuard
from t2t_repro.training.profiler import Profile
from t2t_repro.training.restoring import Progress, receive, restore_newest
from t2t_repro.training.step import StepResult, TrainStep
from t2t_repro.training.stop_requests import Requests, TimeLimit, watch_requests
from t2t_repro.training.workers import WorkerGoneError, Workers

Batches = Callable[[int], tf.data.Dataset]
Validate = Callable[[int], object]

# Interval at which workers exchange the requests of signals. It is shorter than the
# minute or two that job schedulers allow before SIGKILL, and long enough for the checks
# not to slow down training.
STEPS_BETWEEN_REQUESTS = 10


class TrainingLoop:
    """Trains a model from its newest checkpoint to the last step.

    Args:
        model: Model, built in the strategy's scope.
        hparams: Hyper-parameters.
        strategy: Distribution strategy.
        checkpoint_dir: Folder of the checkpoints.
        is_chief: Whether this process is the chief; other processes write nothing.
        data: Identity of the training data, which checkpoints record.
        ordered: Whether 1, 2, 4 and 8 replicas compute the same bits; see `TrainStep`.

    Attributes:
        update: Training step of all replicas, a function of a packed batch and the
            step's number, int32 (); see `TrainStep.replica_step`.
        ended: Whether early stopping or `max_hours` has ended the training.
        time_limit: Limit of the duration.
        validates_start: Whether the weights of step 0 are validated.
        imported_from: After `restore` on the chief, the file of another program from
            which the weights were imported; None for other weights.
    """

    def __init__(
        self,
        model: Transformer,
        hparams: HParams,
        strategy: tf.distribute.Strategy,
        checkpoint_dir: Path,
        is_chief: bool = True,
        data: str | None = None,
        ordered: bool = False,
    ) -> None:
        self.hparams = hparams
        self.data = data
        self.checkpoint_dir = checkpoint_dir
        self.is_chief = is_chief
        self.accumulates = hparams.tokens_per_microbatch < hparams.tokens_per_batch
        self.weights = named_variables(model)
        with strategy.scope():
            step = TrainStep(model, hparams, self.accumulates, ordered)
        self.state = step.state()
        self.workers = Workers(strategy, whole=ordered)
        self.step = 0
        self.unreported: Unreported = []
        self.imported_from: str | None = None
        self.ended = False
        self.validates_start = False
        self.time_limit = TimeLimit(hparams.max_hours)
        self._guard = NonFiniteGuard(hparams.precision)
        self._writer = CheckpointWriter(
            checkpoint_dir, hparams, self.weights, self.state, is_chief
        )
        self._read_result: Callable[[], None] | None = None  # Reads the last step.

        @tf.function(
            input_signature=[packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)],
            autograph=False,
        )
        def update(batch: dict[str, tf.Tensor], step_number: tf.Tensor) -> tf.Tensor:
            results = strategy.run(step.replica_step, args=(batch, step_number))
            # All replicas have the same results. A single tensor is copied from the
            # device in one transfer.
            return tf.stack(
                [strategy.experimental_local_results(r)[0] for r in results]
            )

        self.update = update

    def begin_from(
        self, assign: Callable[[Mapping[str, tf.Variable]], None], copy: Path
    ) -> None:
        """Assigns weights and saves them as the checkpoint of step 0.

        Args:
            assign: Function that assigns the values of variables by name.
            copy: Folder for a copy of the weights, which is never deleted.
        """
        assign(self.weights)
        meta = {checkpoints.DATA: self.data}
        checkpoints.save(copy.parent, 0, self.weights, meta=meta, name=copy.name)
        self.save()

    def restore(self, log: Callable[[str], None] = print) -> int:
        """Restores the newest undamaged checkpoint; returns its step, or 0 without one.

        The chief reads the checkpoint and sends it to the other workers.

        Raises:
            UserError: The newest checkpoints are damaged or belong to another model.
            WorkerGoneError: Another worker has ended.
        """
        progress = Progress()
        variables = self.weights, self.state
        if self.is_chief:
            newest = restore_newest(self.checkpoint_dir, *variables, log)
            if newest is not None:
                progress = newest
                self._writer.record_save(progress.step)
        self.imported_from = progress.imported_from
        if self.workers.is_distributed:
            progress = receive(progress, self.workers, *variables)
        self.step, self.unreported = progress.step, progress.unreported
        self.time_limit.start(progress.seconds)
        self._guard.skipped = progress.skipped
        return self.step

    def run(
        self,
        batches: Batches,
        monitor: Monitor,
        validate: Validate,
        pairs_of: Callable[[int], Iterable[int | str]] = lambda step: (),
        profile: Profile | None = None,
    ) -> bool:
        """Trains to the last step or a stop request; saves checkpoints and validates.

        Ctrl-C and SIGTERM stop after the current step (with several workers: within
        `STEPS_BETWEEN_REQUESTS` steps) and save. A second Ctrl-C interrupts at once,
        except for a checkpoint that is being written. SIGUSR1 and SIGHUP save at the
        same moments, without a stop.

        Args:
            batches: Function that returns the global batches from a step on.
            monitor: Monitor that reports the results of the steps.
            validate: Function called with the number of steps every
                ``hparams.eval_steps`` steps and after the last one. A true result on
                the chief ends the training if ``hparams.early_stopping`` is set.
            pairs_of: Function from a number of earlier steps to the lines of the
                sentence pairs in the next batch, which the message about a skipped
                step lists.
            profile: Profiler of selected steps.

        Returns:
            Whether the training has ended; False if it was stopped.

        Raises:
            UserError: Too many losses or gradients in a row are not finite.
            WorkerGoneError: Another worker has ended; the chief has saved the state.
        """
        profile = profile or Profile(self.checkpoint_dir)
        self._writer.restart_clock()
        writing = self._writer.background
        with watch_requests() as requests, writing.wait_at_end():
            due = self._validation_is_due(self.step)
            if not self.step:
                due = self.validates_start
            if self.workers.any(due and not monitor.was_validated(self.step)):
                # Otherwise than at the start, the previous process was killed before it
                # completed this validation.
                with monitor.pause():
                    self._validate(self.step, validate)
            monitor.ends_at = time.monotonic() + self.time_limit.left
            try:
                for step, batch in enumerate(batches(self.step), self.step):
                    writing.check()
                    if self.ended or step >= self.hparams.train_steps:
                        break
                    stop, save, is_late = self._exchange(step, requests)
                    self.ended = is_late and not stop
                    if stop or is_late:
                        break
                    if save:
                        self._save_on_request(step, monitor)
                    with profile.update(step + 1), self.workers.convert_errors():
                        # A GPU computes the step asynchronously.
                        result = self.update(batch, tf.constant(step))
                    self.read_result()
                    self._read_result = partial(self._read, result, monitor, pairs_of)
                    self._save_and_validate(step + 1, monitor, validate)
                self.read_result()
            except WorkerGoneError:
                # The interrupted step has not changed any variable.
                with suppress(WorkerGoneError):
                    self.read_result()
                self.save(monitor)
                raise
            finally:
                profile.close()
            if self.ended and self.workers.any(not monitor.was_validated(self.step)):
                validate(self.step)
        self.save(monitor)
        return self.ended or self.step >= self.hparams.train_steps

    def read_result(self) -> None:
        """Waits for the pending result of the last step, if any, and reports it.

        The loop calls this after it has started the next step, so that the device never
        waits for the host, and before it saves, validates or ends.
        """
        read, self._read_result = self._read_result, None
        if read is not None:
            read()

    def _exchange(self, step: int, requests: Requests) -> Iterable[bool]:
        """Returns whether any worker must stop or save, and whether time is up."""
        if self.workers.is_distributed and step % STEPS_BETWEEN_REQUESTS:
            return False, False, False
        own = requests.stop, requests.take_save(), self.time_limit.left <= 0
        return (total > 0 for total in self.workers.sums(own))

    def _save_on_request(self, step: int, monitor: Monitor) -> None:
        """Saves after `step` steps, although the schedule does not require it."""
        self.read_result()
        with monitor.pause():
            self.save(monitor)
        monitor.log(f"saved a checkpoint of step {step:,}, as requested by a signal")

    def _read(
        self,
        result: tf.Tensor,
        monitor: Monitor,
        pairs_of: Callable[[int], Iterable[int | str]],
    ) -> None:
        with self.workers.convert_errors():
            values = StepResult(*np.asarray(result).tolist())
        step, self.step = self.step, self.step + 1
        finite = self._guard.check(
            self.step, values, lambda: pairs_of(step), monitor.log
        )
        monitor.record_step(self.step, values if finite else None)

    def _save_and_validate(
        self, step: int, monitor: Monitor, validate: Validate
    ) -> None:
        """Saves and validates after `step` steps if the schedule requires it."""
        save, validation = self._writer.is_due(step), self._validation_is_due(step)
        if save or validation:
            self.read_result()
            with monitor.pause():
                if save:
                    # After the last step, background writing would save no time.
                    self.save(monitor, wait=step == self.hparams.train_steps)
                if validation:
                    self._validate(step, validate)

    def _validate(self, step: int, validate: Validate) -> None:
        """Validates, and ends the training if the chief's result requires it."""
        stops = bool(validate(step))
        if self.hparams.early_stopping:
            self.ended = self.workers.any(stops)

    def save(self, monitor: Monitor | None = None, wait: bool = True) -> None:
        """Saves the full state and the results that `monitor` has not yet reported.

        `wait` is that of `CheckpointWriter.save`.
        """
        unreported = monitor.unreported() if monitor else []
        meta: dict[str, Any] = {
            "skipped": self._guard.skipped,
            "unreported": unreported,
        }
        meta[checkpoints.DATA] = self.data
        meta |= self.time_limit.meta()
        self._writer.save(self.step, meta, wait)

    def _validation_is_due(self, step: int) -> bool:
        """Returns whether the schedule requires a validation at a step."""
        every, last = self.hparams.eval_steps, self.hparams.train_steps
        return step == last or (every > 0 and step % every == 0)
