"""Deletion of old checkpoints: keeps the newest, one every few hours, and the best."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_repro.runs.checkpoints import (
    DATA,
    FULL_STATES_KEPT,
    Checkpoint,
    list_checkpoints,
    save,
    select_newest_data,
    write_meta,
)
from t2t_repro.runs.tensor_file import DamagedCheckpointError
from t2t_repro.system.atomic_dir import ASIDE
from t2t_repro.system.locks import try_exclusive_lock

_REMOVING = ".removing-"
# Keys of checkpoint.json that decide which checkpoints are kept.
SAVED_AT = "saved_at"
UNPLANNED = "unplanned"
BLEU = "val_greedy_bleu"
CHRF = "val_greedy_chrf"
LOSS = "val_loss"


def prune(directory: Path, keep: int, keep_every_hours: float = 0.0) -> None:
    """Deletes old checkpoints and the temporary files of interrupted processes.

    Averaging needs only the weights, so the optimizer state is deleted except in the
    newest `FULL_STATES_KEPT` checkpoints (20 checkpoints of the big model with moments
    take 51 GB). A checkpoint saved on interruption is deleted once a newer one exists,
    so that the average does not depend on interruptions. A checkpoint that another
    process reads is deleted by a later call.

    Args:
        directory: Folder of the checkpoints.
        keep: Number of newest checkpoints to keep.
        keep_every_hours: Minimum interval between older checkpoints that are kept, in
            hours; 0 keeps none of them.
    """
    _remove_leftovers(directory)
    saved = list_checkpoints(directory)
    planned = [c for c in saved if c is saved[-1] or not _note(c, UNPLANNED, False)]
    retained = planned[-keep:] + _one_per_interval(planned, keep_every_hours)
    for checkpoint in saved:
        if checkpoint not in retained:
            _remove(checkpoint)
    for checkpoint in planned[:-FULL_STATES_KEPT]:
        for file in checkpoint.path.glob("optimizer.*"):
            file.unlink()


def keep_best(
    directory: Path,
    keep: int,
    step: int,
    weights: Mapping[str, Any],
    value: float,
    data: str | None = None,
    key: str = BLEU,
) -> None:
    """Saves the weights if they are among the `keep` best so far; deletes the others.

    Checkpoints that were validated on other data are not compared, and are deleted once
    a new one is saved.

    Args:
        directory: Folder of the best checkpoints.
        keep: Number of checkpoints to keep.
        step: Number of training steps so far.
        weights: Variables of the model by name.
        value: BLEU of the validation split, or the value that `key` names.
        data: Identity of the validation split and of the value.
        key: `BLEU`, `CHRF` or `LOSS`, of which lower values are better.

    Raises:
        UserError: The checkpoint cannot be written.
    """
    saved = list_checkpoints(directory)
    best = _sort_by_value(c for c in saved if c.data in (None, data))
    exists = any(checkpoint.step == step for checkpoint in best)
    rank = -value if key == LOSS else value
    better = len(best) < keep or (keep > 0 and rank > _value(best[keep - 1]))
    if better and not exists:
        save(directory, step, weights, meta={key: value, DATA: data})
    _remove_leftovers(directory)
    best = rank_checkpoints(directory)[: max(keep, 1)]
    for checkpoint in list_checkpoints(directory):
        if checkpoint not in best:
            _remove(checkpoint)


def rank_checkpoints(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints that `keep_best` saved, the best one first.

    Only those that were validated on the newest data are returned.
    """
    return _sort_by_value(select_newest_data(list_checkpoints(directory)))


def record_data(checkpoints: Iterable[Checkpoint], data: str) -> None:
    """Records the data of the checkpoints of earlier versions, which did not."""
    for checkpoint in checkpoints:
        with suppress(DamagedCheckpointError):
            write_meta(checkpoint.path, {DATA: data} | checkpoint.meta())


def _sort_by_value(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    return sorted(checkpoints, key=lambda each: (-_value(each), each.step))


def _one_per_interval(planned: Sequence[Checkpoint], hours: float) -> list[Checkpoint]:
    """Selects checkpoints at least `hours` apart, starting with the first one."""
    selected: list[Checkpoint] = []
    due = 0.0
    for checkpoint in planned if hours else ():
        saved_at = _note(checkpoint, SAVED_AT, 0.0)
        if saved_at >= due:
            selected.append(checkpoint)
            due = saved_at + 3600 * hours
    return selected


def _value(checkpoint: Checkpoint) -> float:
    """Returns the value by which `keep_best` selects; higher is better."""
    minus_loss = -_note(checkpoint, LOSS, 0.0)
    return minus_loss or _note(checkpoint, BLEU, 0.0) or _note(checkpoint, CHRF, 0.0)


def _note(checkpoint: Checkpoint, name: str, default: float) -> float:
    """Returns a number from checkpoint.json, or the default if it is missing."""
    try:
        value = checkpoint.meta().get(name)
    except DamagedCheckpointError:
        return default
    return value if isinstance(value, int | float) else default


def _remove(checkpoint: Checkpoint) -> None:
    """Deletes a checkpoint atomically unless another process reads it."""
    with try_exclusive_lock(checkpoint.path) as unread:
        if unread:
            doomed = checkpoint.path.with_name(f"{_REMOVING}{checkpoint.path.name}")
            shutil.rmtree(checkpoint.path.rename(doomed))


def _remove_leftovers(directory: Path) -> None:
    """Deletes folders that an interrupted process was writing or deleting."""
    for prefix in (ASIDE, _REMOVING):
        for leftover in directory.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
