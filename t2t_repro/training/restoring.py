"""Resuming a training run from its newest undamaged checkpoint."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tensorflow as tf

from t2t_repro.runs import checkpoints
from t2t_repro.runs.averaging import MOVING, MOVING_WEIGHT
from t2t_repro.runs.tensor_file import DamagedCheckpointError
from t2t_repro.system.errors import UserError
from t2t_repro.training.monitor import Unreported
from t2t_repro.training.step import StepResult
from t2t_repro.training.stop_requests import SECONDS
from t2t_repro.training.workers import Workers

Variables = Mapping[str, tf.Variable]

_STATE_OF = {
    "optimizer": {"vr", "vc"},
    "ema_decay": {MOVING.rstrip("/"), MOVING_WEIGHT},
    "precision": {"loss_scale"},
}
"""Beginnings of the names of the state that only some values need."""
_FIELDS = len(StepResult.__dataclass_fields__)


@dataclass
class Progress:
    """Progress of a training run.

    Attributes:
        step: Number of steps so far.
        skipped: Number of steps skipped because loss or gradient was not finite.
        unreported: Results of steps since the last report.
        seconds: Duration of the training so far, if `max_hours` limits it; workers do
            not exchange it.
        imported_from: File of another program from which the weights were imported;
            None for weights of a training run. Workers do not exchange it.
    """

    step: int = 0
    skipped: int = 0
    unreported: Unreported = field(default_factory=list)
    imported_from: str | None = None
    seconds: float = 0.0


def restore_newest(
    directory: Path, weights: Variables, state: Variables, log: Callable[[str], None]
) -> Progress | None:
    """Restores the variables from the newest undamaged checkpoint.

    Damaged checkpoints are logged and renamed, and the previous one is used. A
    checkpoint counts as damaged if it cannot be read twice: an error of the disk or the
    network may not occur again.

    Args:
        directory: Folder of the checkpoints.
        weights: Variables of the model by name.
        state: Variables of the training state by name.
        log: Function called with messages about damaged checkpoints.

    Returns:
        The progress of the training run; None without a checkpoint.

    Raises:
        UserError: The newest checkpoints are damaged or belong to another model.
    """
    damaged = []
    for checkpoint in checkpoints.full_states(directory):
        try:
            with checkpoint.hold():
                try:
                    progress = _restore(checkpoint, weights, state)
                except DamagedCheckpointError:
                    progress = _restore(checkpoint, weights, state)
        except DamagedCheckpointError as error:
            log(f"damaged checkpoint: {error}")
            damaged.append(checkpoint)
        else:
            for each in damaged:
                log(f"renamed the damaged checkpoint to {checkpoints.set_aside(each)}")
            return progress
    if damaged:
        raise UserError(
            f"{directory}: cannot resume because the newest checkpoints are damaged; "
            "restore one from a copy, or start over with another --model_dir"
        )
    return None


def _restore(
    checkpoint: checkpoints.Checkpoint, weights: Variables, state: Variables
) -> Progress:
    checkpoints.require_whole(checkpoint)
    checkpoint.tensors("weights").assign(weights)
    saved = checkpoint.tensors("optimizer")
    _require_same_names(checkpoint, set(saved.shapes()), set(state))
    saved.assign(state)
    meta = checkpoint.meta()
    try:
        skipped = int(meta.get("skipped", 0))
        seconds = float(meta.get(SECONDS, 0.0))
        rows = [[float(x) for x in row] for row in meta.get("unreported", ())]
        if any(len(row) not in (_FIELDS, _FIELDS + 1) for row in rows):
            raise ValueError
    except (TypeError, ValueError):
        raise DamagedCheckpointError(
            f"{checkpoint.path}: checkpoint.json has invalid training progress"
        ) from None
    origin = meta.get("imported_from")
    return Progress(checkpoint.step, skipped, rows, origin and str(origin), seconds)


def _require_same_names(
    checkpoint: checkpoints.Checkpoint, saved: set[str], state: set[str]
) -> None:
    """Raises UserError if the training states of two hyper-parameters differ."""
    kinds = {name.partition("/")[0] for name in saved ^ state}
    causes = [name for name, used in _STATE_OF.items() if kinds & used]
    if kinds:
        raise UserError(
            f"{checkpoint.path} is of a training with another "
            f"{' and '.join(causes) or 'freeze'}, whose state differs; keep the "
            "earlier value, or start a new training from this model: --init_from "
            f"{checkpoint.path} and another --model_dir"
        )


def receive(progress: Progress, workers: Workers, *variables: Variables) -> Progress:
    """Copies the chief's variables to all workers; returns the chief's progress.

    Args:
        progress: Progress of this worker; only the chief's is used.
        workers: Workers of the training run.
        variables: Variables by name, in the same order on all workers.
    """

    def broadcast(values: list[float]) -> list[float]:
        tensor = workers.broadcast(tf.constant(values, tf.float64))
        return [float(value) for value in tensor]

    # Only the chief reports, so that the others need no number of a corpus.
    flat = [value for row in progress.unreported for value in row[:_FIELDS]]
    counts = broadcast([progress.step, progress.skipped, len(flat)])
    step, skipped, length = map(int, counts)
    flat = broadcast((flat + [0.0] * length)[:length])
    for variable in (each for some in variables for each in some.values()):
        variable.assign(workers.broadcast(tf.convert_to_tensor(variable)))
    rows = [flat[i : i + _FIELDS] for i in range(0, length, _FIELDS)]
    return Progress(step, skipped, progress.unreported or rows)
