"""Checkpoint averaging (paper section 6.1: the last 5, or 20 for big)."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from t2t_repro.runs.checkpoints import Checkpoint, save
from t2t_repro.system.errors import UserError


def mean(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Returns the float64 mean in the arrays' dtype; raises ValueError for no array.

    One at a time is in memory. Source: tensor2tensor utils/avg_checkpoints.py.
    """
    total: np.ndarray | None = None
    count = 0
    for array in arrays:
        total = array.astype("float64") if total is None else total + array
        count += 1
    if total is None:
        raise ValueError("the mean of no arrays")
    return (total / count).astype(array.dtype)


def average_checkpoints(checkpoints: Sequence[Checkpoint], output: Path) -> Checkpoint:
    """Writes the mean weights of some checkpoints, with the newest one's step.

    Tensors are read one by one; a training that goes on keeps the checkpoints. `output`
    is replaced. Raises UserError if they differ in names or shapes, or one is damaged.
    """
    with ExitStack() as held:
        for checkpoint in checkpoints:
            held.enter_context(checkpoint.held())
        files = [checkpoint.tensors() for checkpoint in checkpoints]
        shapes = files[0].shapes()
        for file in files[1:]:
            if file.shapes() != shapes:
                raise UserError(
                    f"{file.prefix} and {files[0].prefix} hold different variables: "
                    "only checkpoints of one model can be averaged"
                )
        averaged = {name: mean(file.read(name) for file in files) for name in shapes}
    return save(
        output.parent,
        max(checkpoint.step for checkpoint in checkpoints),
        averaged,
        meta={"averaged_steps": [checkpoint.step for checkpoint in checkpoints]},
        name=output.name,
    )
