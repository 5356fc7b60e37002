"""When a training saves its state, and how it does so while it continues."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.runs import checkpoint_rotation, checkpoints
from t2t_repro.system.background import Background


@dataclass
class CheckpointWriter:
    """Writes checkpoints in a thread, one at a time, and deletes old ones.

    Attributes:
        directory: of the checkpoints.
        hparams: how often to save, and how many checkpoints to keep.
        weights: the model's variables by name.
        state: the optimizer's, likewise.
        is_chief: only the chief writes.
        background: the thread.
    """

    directory: Path
    hparams: HParams
    weights: Mapping[str, tf.Variable]
    state: Mapping[str, tf.Variable]
    is_chief: bool
    background: Background = field(default_factory=Background)
    _saved_step: int = -1
    _saved_time: float = field(default_factory=time.monotonic)

    def saved_at(self, step: int) -> None:
        """Takes the state of a step for saved, now."""
        self._saved_step, self._saved_time = step, time.monotonic()

    def restart_clock(self) -> None:
        """Begins the minutes to the next checkpoint."""
        self._saved_time = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Returns whether an uninterrupted training would save at a step, now."""
        every, last = self.hparams.checkpoint_steps, self.hparams.train_steps
        if step == last or (every > 0 and step % every == 0):
            return True
        seconds = 60 * self.hparams.checkpoint_minutes
        return 0 < seconds <= time.monotonic() - self._saved_time

    def save(
        self, step: int, meta: Mapping[str, Any], planned: bool, wait: bool
    ) -> None:
        """Writes the full state and `meta`, unless that of this step is there already.

        Without `wait` it returns when it has copied the state to the host's memory.
        What is not `planned` is deleted when there is a newer checkpoint.
        """
        if self._saved_step != step and self.is_chief:
            self.background.wait()  # One copy at a time.
            meta = {
                checkpoint_rotation.SAVED_AT: round(time.time(), 3),
                **meta,
                **({} if planned else {checkpoint_rotation.UNPLANNED: True}),
            }
            weights, state = map(checkpoints.copied, (self.weights, self.state))
            self.background.start(partial(self._write, step, weights, state, meta))
        self.saved_at(step)
        if wait:
            self.background.wait()

    def _write(self, step: int, *contents: Any) -> None:
        checkpoints.save(self.directory, step, *contents)
        checkpoint_rotation.prune(
            self.directory,
            self.hparams.keep_checkpoints,
            self.hparams.keep_every_hours,
        )
