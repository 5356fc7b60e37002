"""Reading and writing of named tensors in TensorFlow's checkpoint format."""

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.system.errors import UserError

# Exceptions of TensorFlow's reader for missing, truncated and altered files.
_UNREADABLE = (tf.errors.OpError, ValueError, LookupError, RuntimeError, OSError)


class DamagedCheckpointError(UserError):
    """Raised if a file of a checkpoint is missing, truncated or altered."""


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


def copy_to_host(variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
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


def _first_line(error: Exception) -> str:
    text = re.sub(r"\{\{.*?\}\} | \[Op:\w+\]", "", str(error)).strip()
    return text.splitlines()[0] if text else repr(error)
