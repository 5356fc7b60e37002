"""Checkpoints: directories that are whole or absent, holding tensors by name.

A checkpoint is a folder ``step-00001500`` with ``weights.index`` and
``weights.data-00000-of-00001`` (TensorFlow's format, with checksums), ``optimizer.*``
while it is among the newest, and ``checkpoint.json`` with its step and a checksum.
Names are the model's own: TensorFlow's object tracking silently skips layers in lists.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.system.atomic_dir import whole_folder
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import shared_lock

_PREFIX = "step-"
_DAMAGED = "damaged-"
_META = "checkpoint.json"
_CHECKSUM = "sha256"
_NAME = re.compile(rf"{_PREFIX}([0-9]{{8,18}})")
FULL_STATES_KEPT = 2
Arrays = dict[str, np.ndarray]
# What TensorFlow's reader raises for missing, truncated and altered files.
_UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


class DamagedCheckpointError(UserError):
    """A file of a checkpoint is missing, cut short or altered."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    path: Path
    step: int  # Updates done when it was written.

    @property
    def has_optimizer(self) -> bool:
        """Whether training can go on from it."""
        return (self.path / "optimizer.index").exists()

    def meta(self) -> dict[str, Any]:
        """Returns what is beside the tensors; DamagedCheckpointError if not whole."""
        return _read_meta(self.path)

    def tensors(self, part: str = "weights") -> "TensorFile":
        """Opens "weights" or "optimizer" for reading."""
        return TensorFile(self.path / part)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps a training from removing it meanwhile; raises UserError if gone.

        A training on another machine may not see that it is held.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(shared_lock(self.path))
                yield
            except (FileNotFoundError, NotADirectoryError, DamagedCheckpointError):
                if self.path.exists():
                    raise
                raise UserError(
                    f"{self.path} is gone: a training removed it, which keeps newer "
                    "ones; run the command again"
                ) from None


class TensorFile:
    """Reads tensors by name from a TensorFlow checkpoint, a path without ``.index``.

    Raises DamagedCheckpointError for what is missing or damaged.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(str(prefix))
        except _UNREADABLE as error:
            raise DamagedCheckpointError(
                f"{prefix}: missing or damaged ({_first_line(error)}); "
                "use another checkpoint"
            ) from None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of every tensor by name."""
        found = self._reader.get_variable_to_shape_map()
        return {name: tuple(shape) for name, shape in sorted(found.items())}

    def read(self, name: str) -> np.ndarray:
        """Returns one tensor, its checksum verified."""
        try:
            value = self._reader.get_tensor(name)
            # NumPy's own strings lose zero bytes at their end.
            return np.asarray(value, object if isinstance(value, bytes) else None)
        except _UNREADABLE as error:
            raise DamagedCheckpointError(
                f"{self.prefix}: cannot read {name} ({_first_line(error)}); "
                "use another checkpoint"
            ) from None

    def assign_to(self, variables: Mapping[str, Any]) -> None:
        """Fills variables; raises UserError unless names and shapes are the file's."""
        wanted = {name: tuple(v.shape) for name, v in variables.items()}
        found = self.shapes()
        for name in sorted(wanted.keys() | found.keys()):
            if wanted.get(name) != found.get(name):
                raise UserError(
                    f"{self.prefix}: {name} is {found.get(name, 'missing')} in the "
                    f"checkpoint but {wanted.get(name, 'missing')} in the model; "
                    "it was made with other hyper-parameters or another vocabulary"
                )
        for name, variable in variables.items():
            variable.assign(self.read(name))


def copied(variables: Mapping[str, Any]) -> Arrays:
    """Copies what variables hold now into the host's memory."""
    # EagerTensor.numpy() copies, so that no later update shows in it.
    return {name: tf.convert_to_tensor(v).numpy() for name, v in variables.items()}


def write_tensors(prefix: Path, tensors: Mapping[str, Any]) -> None:
    """Writes tensors of any dtype and shape; raises UserError where it cannot."""
    try:
        with tf.device("CPU"):  # Arrays would be copied to a GPU, and back.
            tf.raw_ops.SaveV2(
                prefix=str(prefix),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=[tf.convert_to_tensor(t) for t in tensors.values()],
            )
    except tf.errors.OpError as error:
        raise UserError(f"cannot write {prefix}: {_first_line(error)}") from None


def save(
    directory: Path,
    step: int,
    weights: Mapping[str, Any],
    optimizer: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Checkpoint:
    """Writes a checkpoint, whole or not at all, into `directory`, made when missing.

    Tensors are by name; `optimizer` is needed if training is to go on from here. `meta`
    is kept as JSON; `name` is the folder's, by default of the step. Raises UserError if
    it cannot be written; what was there before is untouched.
    """
    description = {"step": step, **(meta or {})}
    description[_CHECKSUM] = _checksum(description)
    final = directory / (name or f"{_PREFIX}{step:08d}")
    try:
        with whole_folder(final) as aside:
            write_tensors(aside / "weights", weights)
            if optimizer is not None:
                write_tensors(aside / "optimizer", optimizer)
            text = json.dumps(description, indent=2) + "\n"
            write_text_atomically(aside / _META, text)
    except OSError as error:
        raise UserError(f"cannot write {final}: {error.strerror}") from None
    return Checkpoint(final, step)


def open_checkpoint(path: Path) -> Checkpoint:
    """Opens a checkpoint by its folder; raises UserError if missing or altered."""
    return Checkpoint(path, _read_meta(path)["step"])


def list_checkpoints(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints of a folder, oldest first."""
    return [found for found in _folders(directory) if (found.path / _META).exists()]


def _folders(directory: Path) -> list[Checkpoint]:
    """Returns what is called a checkpoint, oldest first; links are not ours to drop."""
    found = [
        Checkpoint(path, int(match[1]))
        for path in directory.glob(f"{_PREFIX}*")
        if (match := _NAME.fullmatch(path.name)) and not path.is_symlink()
    ]
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def full_states(directory: Path) -> list[Checkpoint]:
    """Returns the checkpoints that training can go on from, if whole, newest first."""
    return _folders(directory)[: -FULL_STATES_KEPT - 1 : -1]


def require_whole(checkpoint: Checkpoint) -> None:
    """Raises DamagedCheckpointError if a file of a full state is missing."""
    for name in (_META, "weights.index", "optimizer.index"):
        if not (checkpoint.path / name).exists():
            raise DamagedCheckpointError(f"{checkpoint.path}: {name} is missing")
    found = checkpoint.meta()["step"]
    if found != checkpoint.step:
        raise DamagedCheckpointError(f"{checkpoint.path}: {_META} is of step {found}")


def set_aside(checkpoint: Checkpoint) -> Path:
    """Renames a damaged checkpoint, so that nothing takes it for a whole one."""
    aside = checkpoint.path.with_name(f"{_DAMAGED}{checkpoint.path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return checkpoint.path.rename(aside)


def refuse_to_replace(path: Path) -> None:
    """Raises UserError if the folder for a checkpoint holds anything else."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / _META).exists():
        raise UserError(
            f"--output_dir {path} is there and no checkpoint, so it will not be "
            "replaced; name another folder"
        )


def select_last(checkpoints: Sequence[Checkpoint], last: int) -> list[Checkpoint]:
    """Returns the newest `last` checkpoints; raises UserError if there are fewer."""
    if len(checkpoints) < last:
        raise UserError(
            f"--last {last} needs as many checkpoints, but there are "
            f"{len(checkpoints)}; train longer, save more often or average fewer"
        )
    return list(checkpoints[-last:])


def _checksum(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of the values, however they are laid out in a file."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any]:
    """Reads a checkpoint's description; old ones have no checksum."""
    path = folder / _META
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if type(found["step"]) is not int:
            raise TypeError
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DamagedCheckpointError(
            f"{folder} is not a checkpoint: it needs {_META}, with its step"
        ) from None
    if found.pop(_CHECKSUM, None) not in (None, _checksum(found)):
        raise DamagedCheckpointError(
            f"{path} was altered, its checksum is not that of its text; use another "
            "checkpoint"
        )
    assert isinstance(found, dict)
    return found


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
