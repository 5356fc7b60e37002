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
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.runs.run_metadata import META_FILE
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
MANAGED = ("checkpoints", "best_bleu")
"""Folders of a model directory in which training saves and deletes checkpoints."""
DATA = "data"
"""Key of checkpoint.json: identity of the data that the checkpoint belongs to."""
Arrays = dict[str, np.ndarray]
# Exceptions of TensorFlow's reader for missing, truncated and altered files.
_UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


class DamagedCheckpointError(UserError):
    """Raised if a file of a checkpoint is missing, truncated or altered."""


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

    def tensors(self, part: str = "weights") -> "TensorFile":
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


@contextmanager
def _convert_errors(fault: str) -> Iterator[None]:
    """Converts errors of TensorFlow's reader to DamagedCheckpointError."""
    try:
        yield
    except _UNREADABLE as error:
        raise DamagedCheckpointError(
            f"{fault} ({_first_line(error)}); use another checkpoint"
        ) from None


class TensorFile:
    """Reader of a TensorFlow checkpoint.

    Args:
        prefix: Path of the files without ``.index``.

    Raises:
        DamagedCheckpointError: The files are missing or damaged.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        with _convert_errors(f"{prefix}: missing or damaged"):
            self._files = self._literal()
            self._reader = tf.train.load_checkpoint(self._files)

    def _literal(self) -> str:
        """Returns a prefix of the same files that TensorFlow does not expand.

        TensorFlow's reader takes a path with `*`, `?`, `[` or a backslash for a
        pattern, and rejects invalid UTF-8. The result is then a prefix of links.
        """
        if not re.search("[*?[\\\\\udc80-\udcff]", str(self.prefix)):
            return str(self.prefix)
        folder = Path(tempfile.mkdtemp())
        # The reader opens the data files when it needs them.
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        start = f"{self.prefix.name}."
        for path in self.prefix.absolute().parent.iterdir():
            if path.name.startswith(start):
                (folder / f"tensors.{path.name.removeprefix(start)}").symlink_to(path)
        return str(folder / "tensors")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each tensor by name."""
        shapes = self._reader.get_variable_to_shape_map()
        return {name: tuple(shape) for name, shape in sorted(shapes.items())}

    def read(self, name: str) -> np.ndarray:
        """Returns one tensor after verifying its checksum.

        Raises DamagedCheckpointError if the tensor is missing or damaged.
        """
        with self._convert_read_errors(name):
            value = self._reader.get_tensor(name)
        # NumPy's string dtype drops zero bytes at the end.
        return np.asarray(value, object if isinstance(value, bytes) else None)

    def _convert_read_errors(self, name: str) -> AbstractContextManager[None]:
        return _convert_errors(f"{self.prefix}: cannot read {name}")

    def assign(self, variables: Mapping[str, Any]) -> None:
        """Assigns the tensors to the variables of the same names.

        Raises UserError if names or shapes differ; then no variable is changed.
        """
        expected = {name: tuple(v.shape) for name, v in variables.items()}
        actual = self.shapes()
        for name in sorted(expected.keys() | actual.keys()):
            if expected.get(name) != actual.get(name):
                raise UserError(
                    f"{self.prefix}: {name} is {actual.get(name, 'missing')} in the "
                    f"checkpoint but {expected.get(name, 'missing')} in the model; use "
                    "the hyper-parameters and vocabulary of the checkpoint"
                )
        types = self._reader.get_variable_to_dtype_map()
        for name, variable in variables.items():
            with self._convert_read_errors(name):
                # The variable keeps this tensor. NumPy arrays would be copied.
                (value,) = tf.raw_ops.RestoreV2(
                    prefix=self._files,
                    tensor_names=[name],
                    shape_and_slices=[""],
                    dtypes=[types[name]],
                )
            variable.assign(value)


def copy_to_host(variables: Mapping[str, Any]) -> Arrays:
    """Returns copies of the variables' current values in host memory, by name."""
    # EagerTensor.numpy() copies, so later steps do not change the result.
    return {name: tf.convert_to_tensor(v).numpy() for name, v in variables.items()}


def write_tensors(prefix: Path, tensors: Mapping[str, Any]) -> None:
    """Writes tensors of any dtype and shape in TensorFlow's checkpoint format.

    Raises UserError if the files cannot be written.
    """
    try:
        with tf.device("CPU"):  # Avoids copying the arrays to a GPU and back.
            tf.raw_ops.SaveV2(
                prefix=bytes(prefix),  # The name may be invalid UTF-8.
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

    Raises DamagedCheckpointError if the file is missing, malformed or altered.
    """
    path = folder / _META
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if type(values["step"]) is not int:
            raise TypeError
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DamagedCheckpointError(
            f"{folder} is not a checkpoint: {_META} is missing or has no valid step"
        ) from None
    if values.pop(_CHECKSUM, None) not in (None, _checksum(values)):
        raise DamagedCheckpointError(
            f"{path} was altered: its checksum does not match; use another checkpoint"
        )
    assert isinstance(values, dict)
    return values


def _first_line(error: Exception) -> str:
    text = re.sub(r"\{\{.*?\}\} | \[Op:\w+\]", "", str(error)).strip()
    return text.splitlines()[0] if text else repr(error)
