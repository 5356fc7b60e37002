"""Checkpoints: atomically written folders of named tensors.

A checkpoint is a folder ``step-00001500`` with ``weights.index`` and
``weights.data-00000-of-00001`` (TensorFlow's format, with checksums), ``optimizer.*``
(only in the newest checkpoints), and ``checkpoint.json`` with its step and a checksum.
Tensors have the names of the model's variables, because TensorFlow's object tracking
silently skips layers in lists.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from t2t_repro.runs.run_metadata import META_FILE
from t2t_repro.runs.tensor_file import (
    DamagedCheckpointError,
    TensorFile,
    write_tensors,
)
from t2t_repro.system.atomic_dir import whole_folder
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import shared_lock

_PREFIX = "step-"
_DAMAGED = "damaged-"
_META = "checkpoint.json"
_CHECKSUM = "sha256"
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_NAME = re.compile(rf"{_PREFIX}([0-9]{{8,18}})")
FULL_STATES_KEPT = 2
MANAGED = ("checkpoints", "best_bleu")
"""Folders of a model directory in which training saves and deletes checkpoints."""
DATA = "data"
"""Key of checkpoint.json: identity of the data that the checkpoint belongs to."""


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoint on disk.

    Attributes:
        path: Folder of the checkpoint.
        step: Number of training steps before it was saved.
    """

    path: Path
    step: int

    @property
    def has_optimizer(self) -> bool:
        """Whether training can resume from this checkpoint."""
        return (self.path / "optimizer.index").exists()

    def meta(self) -> dict[str, Any]:
        """Returns the values of checkpoint.json without the checksum.

        Raises DamagedCheckpointError if the file is missing or altered.
        """
        return _read_meta(self.path)

    @property
    def data(self) -> str | None:
        """Identity of the checkpoint's data; None if it is not recorded."""
        try:
            value = self.meta().get(DATA)
        except DamagedCheckpointError:
            return None
        return value if isinstance(value, str) else None

    def tensors(self, part: str = "weights") -> TensorFile:
        """Opens the tensors of "weights" or "optimizer" for reading."""
        return TensorFile(self.path / part)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Locks the checkpoint against deletion by a concurrent training run.

        A run on another machine may ignore the lock. Raises UserError if the
        checkpoint has been deleted.
        """
        try:
            with shared_lock(self.path):
                yield
        except (FileNotFoundError, NotADirectoryError, DamagedCheckpointError):
            if self.path.exists():
                raise
            raise UserError(
                f"{self.path} no longer exists: a running training deletes its old "
                "checkpoints; run the command again"
            ) from None


def save(
    directory: Path,
    step: int,
    weights: Mapping[str, Any],
    optimizer: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Checkpoint:
    """Writes a checkpoint atomically; creates `directory` if it is missing.

    Args:
        directory: Parent folder.
        step: Number of training steps so far.
        weights: Tensors of the model by name.
        optimizer: Tensors of the training state by name; training can resume only from
            a checkpoint with them.
        meta: Further values for checkpoint.json; None omits a value.
        name: Name of the folder; derived from the step by default.

    Raises:
        UserError: The checkpoint cannot be written. An existing one stays unchanged.
    """
    final = directory / (name or f"{_PREFIX}{step:08d}")
    try:
        with whole_folder(final) as aside:
            write_tensors(aside / "weights", weights)
            if optimizer is not None:
                write_tensors(aside / "optimizer", optimizer)
            write_meta(aside, {"step": step, **(meta or {})})
    except OSError as error:
        raise UserError(f"cannot write {final}: {error.strerror}") from None
    return Checkpoint(final, step)


def write_meta(folder: Path, values: Mapping[str, Any]) -> None:
    """Writes checkpoint.json with a checksum; omits values that are None."""
    description = {key: value for key, value in values.items() if value is not None}
    description[_CHECKSUM] = _checksum(description)
    write_text_atomically(folder / _META, json.dumps(description, indent=2) + "\n")


def open_checkpoint(path: Path) -> Checkpoint:
    """Returns the checkpoint in a folder.

    Raises DamagedCheckpointError if checkpoint.json is missing or altered.
    """
    return Checkpoint(path, _read_meta(path)["step"])


def is_checkpoint(path: Path) -> bool:
    """Returns whether a folder is a checkpoint."""
    return (path / _META).is_file()


def list_checkpoints(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints of a folder with a checkpoint.json, oldest first."""
    return [c for c in _folders(directory) if (c.path / _META).exists()]


def select_newest_data(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Returns the last checkpoints, back to the first one of other data.

    Checkpoints of earlier versions do not record their data; they count as being of the
    same data.
    """
    data = checkpoints[-1].data if checkpoints else None
    if data is None:
        return list(checkpoints)
    same = takewhile(lambda c: c.data in (None, data), reversed(checkpoints))
    return list(same)[::-1]


def checkpoints_to_average(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints that may be averaged with the newest one, oldest first.

    They are of the same data. The weights of an imported model (step 0) are excluded
    once the model has been trained.
    """
    saved = list_checkpoints(directory)
    return select_newest_data([c for c in saved if c.step] or saved)


def _folders(directory: Path) -> list[Checkpoint]:
    """Returns all folders with a checkpoint's name, oldest first.

    Links are excluded: their targets may belong to another training run.
    """
    folders = [
        Checkpoint(path, int(match[1]))
        for path in directory.glob(f"{_PREFIX}*")
        if (match := _NAME.fullmatch(path.name)) and not path.is_symlink()
    ]
    return sorted(folders, key=lambda checkpoint: checkpoint.step)


def full_states(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints from which training can resume, newest first.

    They may be damaged; see `require_whole`.
    """
    return _folders(directory)[: -FULL_STATES_KEPT - 1 : -1]


def require_whole(checkpoint: Checkpoint) -> None:
    """Raises DamagedCheckpointError if training cannot resume from a checkpoint.

    Checks that the files exist and that checkpoint.json has the folder's step.
    """
    for name in (_META, "weights.index", "optimizer.index"):
        if not (checkpoint.path / name).exists():
            raise DamagedCheckpointError(f"{checkpoint.path}: {name} is missing")
    step = checkpoint.meta()["step"]
    if step != checkpoint.step:
        raise DamagedCheckpointError(
            f"{checkpoint.path}: {_META} has step {step}, expected {checkpoint.step}"
        )


def set_aside(checkpoint: Checkpoint) -> Path:
    """Renames a damaged checkpoint so that it is ignored; returns its new path."""
    aside = checkpoint.path.with_name(f"{_DAMAGED}{checkpoint.path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return checkpoint.path.rename(aside)


def refuse_to_replace(path: Path) -> None:
    """Raises UserError if an output folder must not become a checkpoint.

    It must not have other contents, and must not be in a folder of checkpoints that
    training manages.
    """
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not is_empty and not (path / _META).exists():
        raise UserError(
            f"--output_dir {path} exists and is not a checkpoint, so it will not be "
            "replaced; choose another folder"
        )
    managed = (p for p in path.resolve().parents if p.name in (*MANAGED, "averaged"))
    if any((folder.parent / META_FILE).exists() for folder in managed):
        raise UserError(
            f"--output_dir {path}: training manages the checkpoints in this folder; "
            "choose another folder"
        )


def select_last(checkpoints: Sequence[Checkpoint], last: int) -> list[Checkpoint]:
    """Returns the newest `last` checkpoints; raises UserError if there are fewer."""
    if len(checkpoints) < last:
        raise UserError(
            f"--last {last} exceeds the number of checkpoints ({len(checkpoints)}) of "
            "the present data; train longer, save more often or average fewer"
        )
    return list(checkpoints[-last:])


def _checksum(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of the values, independent of the layout of their file."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any]:
    """Returns the values of checkpoint.json; verifies the checksum if there is one.

    Raises DamagedCheckpointError if the file is missing, malformed or altered, and
    another UserError if it cannot be read.
    """
    path = folder / _META
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if type(values["step"]) is not int:
            raise TypeError
    except (*_ABSENT, ValueError, KeyError, TypeError, RecursionError):
        raise DamagedCheckpointError(
            f"{folder} is not a checkpoint: {_META} is missing or has no valid step"
        ) from None
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; run the command again, or use "
            "another checkpoint"
        ) from None
    if values.pop(_CHECKSUM, None) not in (None, _checksum(values)):
        raise DamagedCheckpointError(
            f"{path} was altered: its checksum does not match; use another checkpoint"
        )
    assert isinstance(values, dict)
    return values
