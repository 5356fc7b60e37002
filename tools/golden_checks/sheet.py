"""Arrays of a file of reference data and the results of their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from golden_checks.rounding import tolerance
from t2t_repro.system.errors import UserError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Finding:
    """Result of the check of one array.

    Attributes:
        file: Path of the file, relative to the folder.
        array: Name of the array in the file.
        difference: Largest difference from our values; None for an array that was not
            compared.
        tolerance: Largest allowed difference.
        relative: Whether difference and tolerance are relative.
        used: Whether the array was compared or used as an input.
    """

    file: str
    array: str
    difference: float | None = None
    tolerance: float = 0.0
    relative: bool = False
    used: bool = True

    @property
    def passed(self) -> bool:
        """Whether the array was used and, if compared, is within the tolerance."""
        difference = self.difference
        return self.used if difference is None else difference <= self.tolerance

    def line(self) -> str:
        """Formats the finding as one line of text."""
        verdict = "input" if self.used else "NOT USED"
        if self.difference is not None:
            verdict = (
                f"{'ok' if self.passed else 'FAILED'}  largest difference "
                f"{self.difference:.2g}, tolerance {self.tolerance:.2g}"
            )
        return f"{self.file}  {self.array}  {verdict}{' relative' * self.relative}"


class Sheet:
    """Arrays of a file by name, with a record of the arrays that were used.

    Args:
        file: Path of the file, relative to the folder.
        arrays: Name -> array or other value.
    """

    def __init__(self, file: str, arrays: Mapping[str, Any]) -> None:
        self.file = file
        self.arrays = arrays
        self._findings: dict[str, Finding] = {}

    def __contains__(self, name: str) -> bool:
        """Returns whether the file has an array of this name."""
        return name in self.arrays

    def take(self, name: str) -> Any:
        """Returns an input array; raises UserError if it is missing."""
        if name not in self.arrays:
            raise UserError(f"{self.file}: required array {name} is missing")
        self._findings.setdefault(name, Finding(self.file, name))
        return self.arrays[name]

    def names(self, prefix: str) -> list[str]:
        """Returns the names of arrays that start with a prefix, without the prefix."""
        names = [name for name in self.arrays if name.startswith(prefix)]
        return [name.removeprefix(prefix) for name in names]

    def group(self, prefix: str) -> dict[str, Any]:
        """Returns the arrays under a prefix, by name without the prefix."""
        return {name: self.take(prefix + name) for name in self.names(prefix)}

    def compare(
        self,
        name: str,
        ours: npt.ArrayLike,
        additions: int = 0,
        *,
        magnitude: float = 0.0,
        mask: Array | None = None,
        relative: bool = False,
    ) -> None:
        """Compares an array with our values.

        Args:
            name: Name of the array.
            ours: Our values, of the same shape.
            additions: Number of additions that may round differently; see
                `rounding.tolerance`.
            magnitude: Largest absolute value of the partial sums, if it is larger than
                that of the array.
            mask: Array that broadcasts to the values; they are not compared where it
                is 0.
            relative: Whether to divide differences by the array's values.
        """
        theirs = np.asarray(self.take(name))
        difference = _difference(np.asarray(ours), theirs, mask, relative)
        largest = 1.0 if relative else max(magnitude, largest_magnitude(theirs, mask))
        allowed = tolerance(largest, additions)
        self._findings[name] = Finding(self.file, name, difference, allowed, relative)

    def compare_ids(self, name: str, ours: npt.ArrayLike) -> None:
        """Compares ids for equality after padding the shorter array with PAD."""
        theirs, mine = np.asarray(self.take(name)), np.asarray(ours)
        length = max(theirs.shape[-1], mine.shape[-1])
        difference = _difference(pad(mine, length), pad(theirs, length))
        self._findings[name] = Finding(self.file, name, difference)

    def compare_equal(self, name: str, ours: Any) -> None:
        """Compares text or lists; the difference is the number of unequal entries."""
        both = self.take(name), ours
        pairs = zip_longest(*both) if isinstance(ours, list) else [both]
        unequal = sum(theirs != mine for theirs, mine in pairs)
        self._findings[name] = Finding(self.file, name, float(unequal))

    def findings(self) -> list[Finding]:
        """Returns the findings of all arrays, in the order of the file."""
        return [
            self._findings.get(name, Finding(self.file, name, used=False))
            for name in self.arrays
        ]


def pad(ids: Array, length: int) -> Array:
    """Pads the last axis with PAD to a length."""
    return np.pad(ids, [(0, 0)] * (ids.ndim - 1) + [(0, length - ids.shape[-1])])


def largest_magnitude(values: npt.ArrayLike, mask: Array | None = None) -> float:
    """Returns the largest absolute value where a broadcast mask is not 0."""
    magnitudes = np.abs(np.asarray(values, np.float64))
    if mask is not None:
        magnitudes = np.where(mask, magnitudes, 0.0)
    return float(magnitudes.max(initial=0))


def _difference(
    ours: Array, theirs: Array, mask: Array | None = None, relative: bool = False
) -> float:
    """Returns the largest difference; infinity for unequal shapes and NaN."""
    if ours.shape != theirs.shape:
        return float("inf")
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    if relative:
        difference /= np.where(theirs == 0, 1.0, np.abs(theirs))
    if mask is not None:
        difference = np.where(mask, difference, 0.0)
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))
