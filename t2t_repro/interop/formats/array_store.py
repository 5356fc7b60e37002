"""One way for every importer to take arrays out of a file of weights."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from t2t_repro.system.errors import UserError

Arrays = dict[str, np.ndarray]
FLOATS = ("bfloat16", "float16", "float32", "float64")


class ArrayStore:
    """The arrays of a file of weights; an importer takes each of them.

    Attributes:
        file: The file, or the prefix of several files, for messages.
        shapes: Shape of each array by its key.
        left: Key -> name of the arrays of the model that nothing has taken yet.
        used: Number of arrays that were taken.
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
            file: As the attribute.
            shapes: As the attribute.
            read: Reads the array of a key; raises UserError if the file is damaged.
            dtypes: Names of the dtypes that can be imported.
        """
        self.file = file
        self.shapes = shapes
        self.left = {key: key for key in shapes}
        self.used = 0
        self.read = read
        self._dtypes = dtypes

    @classmethod
    def of_arrays(
        cls,
        file: Path,
        arrays: Mapping[str, np.ndarray],
        dtypes: Collection[str] = FLOATS,
    ) -> "ArrayStore":
        """Creates a store of arrays that are in memory."""
        shapes = {name: array.shape for name, array in arrays.items()}
        return cls(file, shapes, arrays.__getitem__, dtypes)

    def key(self, name: str) -> str | None:
        """Returns the key of the array that a name leads to, None if there is none."""
        return name if name in self.shapes else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Returns the shape of an array, None if there is none of this name."""
        key = self.key(name)
        return None if key is None else self.shapes[key]

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """Returns an array as float32; None in `shape` matches any size.

        Raises:
            UserError: The array is missing or damaged, has another shape or dtype, or
                holds infinity or NaN.
        """
        key = self.key(name)
        if key is None:
            raise UserError(
                f"{self.file} has no {name}; it is damaged, or not of the model that "
                "its settings describe"
            )
        found = self.shapes[key]
        if len(found) != len(shape) or any(
            wanted not in (None, size)
            for wanted, size in zip(shape, found, strict=True)
        ):
            raise UserError(
                f"{self.file}: {name} has the shape {found}, but the settings "
                f"ask for {tuple('any' if n is None else n for n in shape)}; the files "
                "are of different models"
            )
        array = self.read(key)
        if array.dtype.name not in self._dtypes:
            raise UserError(
                f"{self.file}: {name} holds {array.dtype}, but only "
                f"{' or '.join(self._dtypes)} can be imported; import the model "
                "before it was quantized or converted"
            )
        with np.errstate(over="ignore"):  # Infinity is refused below.
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            raise UserError(f"{self.file}: {name} holds infinity or NaN")
        self.used += self.left.pop(key, None) is not None
        return array

    def take_if_there(self, name: str, *shape: int | None) -> np.ndarray | None:
        """Returns an array, or None if there is none; raises as `take`."""
        return None if self.key(name) is None else self.take(name, *shape)

    def drop(self, names: Iterable[str]) -> None:
        """Removes arrays that no model needs from those that are left."""
        for name in names:
            self.left.pop(name, None)

    def refuse_left(self) -> None:
        """Raises UserError that names an array which nothing has taken."""
        if self.left:
            raise UserError(
                f"{self.file}: {min(self.left.values())} is no part of a Transformer "
                "that is supported here"
            )


def some(names: Iterable[object], most: int = 4) -> str:
    """Lists names, at most `most` of them, and the number of the others."""
    listed = [str(name) for name in names]
    more = len(listed) - most
    first = ", ".join(listed[:most])
    return f"{first} and {more:,} more" if more > 0 else first
