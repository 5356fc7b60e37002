"""Access to the arrays of a weight file, with checks of names, shapes and dtypes."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from t2t_repro.system.errors import UserError

Arrays = dict[str, np.ndarray]
FLOATS = ("bfloat16", "float16", "float32", "float64")


class ArrayStore:
    """Arrays of a weight file, each of which an importer must take or drop.

    Attributes:
        file: Path of the file, or prefix of several files, for messages.
        shapes: Shape of each array by its key.
        remaining: Name of each model array that has not been taken yet, by key.
        used: Number of arrays taken.
    """

    def __init__(
        self,
        file: Path,
        shapes: Mapping[str, tuple[int, ...]],
        read: Callable[[str], np.ndarray],
        dtypes: Collection[str] = FLOATS,
    ) -> None:
        """Creates a store.

        Args:
            file: Path of the file, or prefix of several files, for messages.
            shapes: Shape of each array by its key.
            read: Function that returns the array of a key and raises UserError if the
                file is damaged.
            dtypes: Names of the accepted dtypes.
        """
        self.file = file
        self.shapes = shapes
        self.remaining = {key: key for key in shapes}
        self.used = 0
        self.read = read
        self._dtypes = dtypes

    @classmethod
    def from_arrays(
        cls,
        file: Path,
        arrays: Mapping[str, np.ndarray],
        dtypes: Collection[str] = FLOATS,
    ) -> "ArrayStore":
        """Creates a store from arrays in memory."""
        shapes = {name: array.shape for name, array in arrays.items()}
        return cls(file, shapes, arrays.__getitem__, dtypes)

    def key(self, name: str) -> str | None:
        """Returns the key of the named array, or None if the file lacks it."""
        return name if name in self.shapes else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Returns the shape of the named array, or None if the file lacks it."""
        key = self.key(name)
        return None if key is None else self.shapes[key]

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """Returns an array as float32 and counts it as used.

        Args:
            name: Name of the array.
            shape: Expected shape; None matches any size.

        Raises:
            UserError: The array is missing or damaged, has an unexpected shape or
                dtype, or contains infinity or NaN.
        """
        key = self.key(name)
        if key is None:
            raise UserError(
                f"{self.file} lacks {name}; it is damaged, or its settings describe a "
                "different model"
            )
        actual = self.shapes[key]
        if len(actual) != len(shape) or any(
            expected not in (None, size)
            for expected, size in zip(shape, actual, strict=True)
        ):
            raise UserError(
                f"{self.file}: {name} has the shape {actual}, but the settings "
                f"require {tuple('any' if n is None else n for n in shape)}; the files "
                "belong to different models"
            )
        array = self.read(key)
        if array.dtype.name not in self._dtypes:
            raise UserError(
                f"{self.file}: {name} has the dtype {array.dtype}, but only "
                f"{' or '.join(self._dtypes)} can be imported; import the original "
                "model, not a quantized or converted one"
            )
        with np.errstate(over="ignore"):  # Infinity is rejected below.
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            raise UserError(
                f"{self.file}: {name} contains infinity or NaN; use other weights"
            )
        self.used += self.remaining.pop(key, None) is not None
        return array

    def take_optional(self, name: str, *shape: int | None) -> np.ndarray | None:
        """Returns an array like `take`, or None if the file lacks it."""
        return None if self.key(name) is None else self.take(name, *shape)

    def drop(self, names: Iterable[str]) -> None:
        """Marks arrays as not needed, so that `reject_remaining` accepts them."""
        for name in names:
            self.remaining.pop(name, None)

    def reject_remaining(self) -> None:
        """Raises UserError if an array has been neither taken nor dropped."""
        if self.remaining:
            raise UserError(
                f"{self.file}: {min(self.remaining.values())} does not belong to a "
                "supported Transformer"
            )


def format_names(names: Iterable[object], most: int = 4) -> str:
    """Lists the first `most` names and counts the others, e.g. `a, b and 3 more`."""
    listed = [str(name) for name in names]
    more = len(listed) - most
    first = ", ".join(listed[:most])
    return f"{first} and {more:,} more" if more > 0 else first
