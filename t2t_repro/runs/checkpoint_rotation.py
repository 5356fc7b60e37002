"""Which checkpoints stay: the newest, one every few hours, and the best."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_repro.runs.checkpoints import (
    FULL_STATES_KEPT,
    Checkpoint,
    DamagedCheckpointError,
    list_checkpoints,
    save,
)
from t2t_repro.system.atomic_dir import ASIDE
from t2t_repro.system.locks import try_exclusive_lock

_REMOVING = ".removing-"
# What checkpoints are chosen by, in their descriptions.
SAVED_AT = "saved_at"
UNPLANNED = "unplanned"
BLEU = "val_greedy_bleu"


def prune(directory: Path, keep: int, keep_every_hours: float = 0.0) -> None:
    """Deletes the checkpoints that are not kept, and what an interruption left.

    Kept are the newest `keep` and, of older ones, one in `keep_every_hours` (0: none).
    Averaging needs the weights alone, so Adam's moments stay only beside the newest
    `FULL_STATES_KEPT` (20 checkpoints of the big model with moments are 51 GB). One
    saved because the training was stopped goes as soon as there is a newer one, so that
    the average does not depend on interruptions. What is being read stays until next
    time.
    """
    _sweep(directory)
    found = list_checkpoints(directory)
    planned = [c for c in found if c is found[-1] or not _note(c, UNPLANNED, False)]
    kept = planned[-keep:] + _one_in(planned, keep_every_hours)
    for checkpoint in found:
        if checkpoint not in kept:
            _remove(checkpoint)
    for checkpoint in planned[:-FULL_STATES_KEPT]:
        for file in checkpoint.path.glob("optimizer.*"):
            file.unlink()


def keep_best(
    directory: Path, keep: int, step: int, weights: Mapping[str, Any], bleu: float
) -> None:
    """Saves the weights if they are among the `keep` best so far; drops the worst.

    `bleu` is of the validation split. Raises UserError where it cannot write.
    """
    best = ranked(directory)
    known = any(checkpoint.step == step for checkpoint in best)
    better = len(best) < keep or (keep > 0 and bleu > _bleu(best[keep - 1]))
    if better and not known:
        save(directory, step, weights, meta={BLEU: bleu})
        best = ranked(directory)
    _sweep(directory)
    for checkpoint in best[max(keep, 1) :]:
        _remove(checkpoint)


def ranked(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints that `keep_best` saved, the best first."""
    found = list_checkpoints(directory)
    return sorted(found, key=lambda checkpoint: (-_bleu(checkpoint), checkpoint.step))


def _one_in(planned: Sequence[Checkpoint], hours: float) -> list[Checkpoint]:
    """Returns the first checkpoint, and each that is hours younger than the last."""
    kept: list[Checkpoint] = []
    for checkpoint in planned if hours else ():
        saved_at = _note(checkpoint, SAVED_AT, 0.0)
        if not kept or saved_at >= _note(kept[-1], SAVED_AT, 0.0) + 3600 * hours:
            kept.append(checkpoint)
    return kept


def _bleu(checkpoint: Checkpoint) -> float:
    return _note(checkpoint, BLEU, 0.0)


def _note(checkpoint: Checkpoint, name: str, default: float) -> float:
    """Returns a number of a checkpoint's description, the default where it lacks."""
    try:
        found = checkpoint.meta().get(name)
    except DamagedCheckpointError:
        return default
    return found if isinstance(found, int | float) else default


def _remove(checkpoint: Checkpoint) -> None:
    """Deletes a checkpoint unless somebody reads it; no half of one is left."""
    with try_exclusive_lock(checkpoint.path) as unread:
        if unread:
            gone = checkpoint.path.with_name(f"{_REMOVING}{checkpoint.path.name}")
            shutil.rmtree(checkpoint.path.rename(gone))


def _sweep(directory: Path) -> None:
    """Deletes what an interrupted process left half written or half removed."""
    for prefix in (ASIDE, _REMOVING):
        for left in directory.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
