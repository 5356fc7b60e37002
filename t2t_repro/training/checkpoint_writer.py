"""Schedule of checkpoints, and their writing in the background."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.runs import checkpoints
from t2t_repro.runs.checkpoint_rotation import SAVED_AT, UNPLANNED, prune
from t2t_repro.runs.tensor_file import copy_to_host
from t2t_repro.system.background import Background


@dataclass
class CheckpointWriter:
    """Writes checkpoints in a thread, one at a time, and deletes old ones.

    Attributes:
        directory: Folder of the checkpoints.
        hparams: Hyper-parameters: intervals and the number of checkpoints to keep.
        weights: Variables of the model by name.
        state: Variables of the training state by name.
        is_chief: Whether this process is the chief; other processes write nothing.
        background: Thread that writes.
    """

    directory: Path
    hparams: HParams
    weights: Mapping[str, tf.Variable]
    state: Mapping[str, tf.Variable]
    is_chief: bool
    background: Background = field(default_factory=Background)
    _saved_step: int = -1
    _saved_time: float = field(default_factory=time.monotonic)

    def record_save(self, step: int) -> None:
        """Records the step of the newest checkpoint and the current time."""
        self._saved_step, self._saved_time = step, time.monotonic()

    def restart_clock(self) -> None:
        """Restarts the interval of `checkpoint_minutes`."""
        self._saved_time = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Returns whether the schedule requires a checkpoint now, after a step."""
        every, last = self.hparams.checkpoint_steps, self.hparams.train_steps
        if step == last or (every > 0 and step % every == 0):
            return True
        seconds = 60 * self.hparams.checkpoint_minutes
        return 0 < seconds <= time.monotonic() - self._saved_time

    def save(self, step: int, meta: Mapping[str, Any], wait: bool) -> None:
        """Writes a checkpoint of the full state unless that step is already saved.

        Then it deletes old checkpoints. A checkpoint that is not due is deleted once a
        newer one exists.

        Args:
            step: Number of steps so far.
            meta: Further values for checkpoint.json.
            wait: Whether to wait for the file to be written, rather than only for the
                copy of the state to host memory.
        """
        if self.is_chief:
            self.background.wait()  # Keeps only one copy of the state in memory.
            # An error may have ended the last deletion.
            job: Callable[[], None] = self._prune
            if self._saved_step != step:
                notes = {SAVED_AT: round(time.time(), 3), **meta}
                if not self.is_due(step):
                    notes[UNPLANNED] = True
                weights, state = map(copy_to_host, (self.weights, self.state))
                job = partial(self._write, step, weights, state, notes)
            self.background.start(job)
        self.record_save(step)
        if wait:
            self.background.wait()

    def _write(self, step: int, *contents: Any) -> None:
        checkpoints.save(self.directory, step, *contents)
        self._prune()

    def _prune(self) -> None:
        hparams = self.hparams
        prune(self.directory, hparams.keep_checkpoints, hparams.keep_every_hours)
