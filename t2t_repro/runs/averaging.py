"""Checkpoint averaging (paper section 6.1: the last 5, or 20 for big)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.runs.checkpoints import DATA, Checkpoint, save
from t2t_repro.system.errors import UserError

MOVING, MOVING_WEIGHT = "ema/", "ema_weight"
"""Names of the moving average in the training state: prefix of the sums, and weight."""


def mean(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Returns the mean of arrays in their dtype, accumulated in float64.

    Only one array is in memory at a time. Raises ValueError if `arrays` is empty.
    Source: tensor2tensor utils/avg_checkpoints.py.
    """
    total: np.ndarray | None = None
    count = 0
    for array in arrays:
        total = array.astype("float64") if total is None else total + array
        count += 1
    if total is None:
        raise ValueError("mean() needs at least one array")
    return (total / count).astype(array.dtype)


def assign_mean(
    checkpoints: Sequence[Checkpoint], variables: Mapping[str, Any]
) -> None:
    """Assigns the mean weights of checkpoints of one model to its variables by name."""
    with ExitStack() as locks:
        for checkpoint in checkpoints:
            locks.enter_context(checkpoint.hold())
        files = [checkpoint.tensors() for checkpoint in checkpoints]
        for name, variable in variables.items():
            variable.assign(mean(file.read(name) for file in files))


def average_checkpoints(checkpoints: Sequence[Checkpoint], output: Path) -> Checkpoint:
    """Writes the mean weights of checkpoints, with the step of the newest one.

    Replaces `output`. A concurrent training run cannot delete the checkpoints while
    they are read. Raises UserError if a checkpoint is damaged, or if the checkpoints
    differ in the names or shapes of their weights.
    """
    with ExitStack() as locks:
        for checkpoint in checkpoints:
            locks.enter_context(checkpoint.hold())
        files = [checkpoint.tensors() for checkpoint in checkpoints]
        shapes = files[0].shapes()
        for file in files[1:]:
            if file.shapes() != shapes:
                raise UserError(
                    f"{file.prefix} and {files[0].prefix} have different variables; "
                    "average only checkpoints of one model"
                )
        averaged = {name: mean(file.read(name) for file in files) for name in shapes}
        data = {checkpoint.data for checkpoint in checkpoints}
    steps = [checkpoint.step for checkpoint in checkpoints]
    meta = {"averaged_steps": steps, DATA: data.pop() if len(data) == 1 else None}
    return save(output.parent, max(steps), averaged, meta=meta, name=output.name)


def write_moving_average(checkpoint: Checkpoint, output: Path) -> Checkpoint:
    """Writes the moving average of the weights in a checkpoint's training state.

    Replaces `output`. Raises UserError if the checkpoint is damaged or has no moving
    average.
    """
    with checkpoint.hold():
        file = checkpoint.tensors("optimizer")
        names = [name for name in file.shapes() if name.startswith(MOVING)]
        if not names:
            raise UserError(f"{checkpoint.path} has no moving average of the weights")
        weight = file.read(MOVING_WEIGHT)
        averaged = {
            name.removeprefix(MOVING): file.read(name) / weight for name in names
        }
    meta = {"averaged_steps": [checkpoint.step], DATA: checkpoint.data}
    return save(output.parent, checkpoint.step, averaged, meta=meta, name=output.name)
