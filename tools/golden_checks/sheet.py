"""One file of vectors: what was compared in it, and what nobody looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_repro.system.errors import UserError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Finding:
    """What became of one array.

    Attributes:
        file: the file, from the folder on.
        array: its name in the file.
        difference: the largest difference from ours; None: it is an input, or nobody
            looked at it.
        tolerance: the largest difference allowed.
        relative: whether both are parts of the value instead of absolute.
        seen: whether anybody looked at it.
    """

    file: str
    array: str
    difference: float | None = None
    tolerance: float = 0.0
    relative: bool = False
    seen: bool = True

    @property
    def passed(self) -> bool:
        """Whether the array was used, and agrees where it was compared."""
        if self.difference is None:
            return self.seen
        return self.difference <= self.tolerance

    def line(self) -> str:
        """Returns the finding for people, on one line."""
        if not self.seen:
            verdict = "NOT LOOKED AT"
        elif self.difference is None:
            verdict = "input"
        else:
            kind = " relative" if self.relative else ""
            verdict = (
                f"{'ok' if self.passed else 'FAILED'}  largest difference "
                f"{self.difference:.2g}, tolerance {self.tolerance:g}{kind}"
            )
        return f"{self.file}  {self.array}  {verdict}"


class Sheet:
    """The arrays of a file, by name; it remembers which of them were used."""

    def __init__(self, file: str, arrays: Mapping[str, Any]) -> None:
        self.file = file
        self.arrays = arrays
        self._findings: dict[str, Finding] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the file holds an array."""
        return name in self.arrays

    def take(self, name: str) -> Any:
        """Returns an array that the computation starts from; UserError if missing."""
        if name not in self.arrays:
            raise UserError(f"{self.file}: {name} is missing, which its kind needs")
        self._findings.setdefault(name, Finding(self.file, name))
        return self.arrays[name]

    def names(self, prefix: str) -> list[str]:
        """Returns what follows a prefix, of every array that begins with it."""
        names = [name for name in self.arrays if name.startswith(prefix)]
        return [name.removeprefix(prefix) for name in names]

    def group(self, prefix: str) -> dict[str, Any]:
        """Returns the arrays whose names begin with a prefix, without it."""
        return {name: self.take(prefix + name) for name in self.names(prefix)}

    def compare(
        self,
        name: str,
        ours: npt.ArrayLike,
        tolerance: float,
        mask: Array | None = None,
        relative: bool = False,
    ) -> None:
        """Compares an array with ours, of the same shape.

        Nothing is compared where `mask`, broadcast to the array, is 0; `relative`
        compares differences over the array's own values.
        """
        theirs = np.asarray(self.take(name))
        found = _difference(np.asarray(ours), theirs, mask, relative)
        self._findings[name] = Finding(self.file, name, found, tolerance, relative)

    def compare_ids(self, name: str, ours: npt.ArrayLike) -> None:
        """Compares symbols, which must be equal; the shorter is padded with PAD."""
        theirs, mine = np.asarray(self.take(name)), np.asarray(ours)
        length = max(theirs.shape[-1], mine.shape[-1])

        def padded(ids: Array) -> Array:
            sides = [(0, 0)] * (ids.ndim - 1) + [(0, length - ids.shape[-1])]
            return np.pad(ids, sides)

        found = _difference(padded(mine), padded(theirs), None, relative=False)
        self._findings[name] = Finding(self.file, name, found)

    def compare_equal(self, name: str, ours: Any) -> None:
        """Compares what is text or lists, as the number of unequal entries."""
        theirs = self.take(name)
        if isinstance(theirs, list) and isinstance(ours, list):
            unequal = sum(a != b for a, b in zip(theirs, ours, strict=False))
            unequal += abs(len(theirs) - len(ours))
        else:
            unequal = int(theirs != ours)
        self._findings[name] = Finding(self.file, name, float(unequal))

    def findings(self) -> list[Finding]:
        """Returns what became of every array, in the file's order."""
        return [
            self._findings.get(name, Finding(self.file, name, seen=False))
            for name in self.arrays
        ]


Check = Callable[[Sheet], None]


def _difference(
    ours: Array, theirs: Array, mask: Array | None, relative: bool
) -> float:
    """Returns the largest difference; infinity for other shapes and NaN."""
    if ours.shape != theirs.shape:
        return float("inf")
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    if relative:
        scale = np.abs(theirs.astype(np.float64))
        difference = np.divide(
            difference, scale, out=difference.copy(), where=scale > 0
        )
    if mask is not None:
        difference = np.where(mask, difference, 0.0)
    largest = float(difference.max(initial=0.0))
    return float("inf") if np.isnan(difference).any() else largest
