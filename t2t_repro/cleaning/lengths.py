"""Lengths of the two sides of a pair, compared with those of the other pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Words and characters added to each side, because short sentences of equal meaning can
# differ by a larger factor ("Try again.", "Versuchen Sie es noch einmal.").
_ADDED = np.array([2, 10])
# The standard deviation of a normal variable by its median absolute deviation.
_DEVIATION_PER_MEDIAN = 1.4826


def compute_ratios(lengths: Ints) -> Floats:
    """Returns the factor by which the lengths of each pair's sides differ.

    Two words, or 10 characters, are added to each length. The factor is relative to the
    median pair. Of the factors in words and in characters, the smaller one is returned.

    Args:
        lengths: int64 (pairs, 2, 2), words and characters of source and target, each
            at least 1.

    Returns:
        float64 (pairs,), at least 1.
    """
    ratios = np.log((lengths[:, 1] + _ADDED) / (lengths[:, 0] + _ADDED))
    differences = np.abs(ratios - np.median(ratios, axis=0))
    return np.asarray(np.exp(differences.min(axis=1)))


def compute_deviations(lengths: Ints) -> Floats:
    """Returns the length difference of each pair in standard deviations.

    Gale & Church (1993, section 3.2): the variance of a target's length in characters
    is proportional to the source's length. The deviation is estimated from the median,
    which a few wrong pairs hardly change.

    Args:
        lengths: int64 (pairs, 2, 2), see `compute_ratios`.

    Returns:
        float64 (pairs,), not negative.
    """
    sources, targets = lengths[:, :, 1].T
    deltas = np.abs(targets - sources * np.median(targets / sources))
    deltas = deltas / np.sqrt(sources)
    return np.asarray(deltas / max(_DEVIATION_PER_MEDIAN * np.median(deltas), 1))


LENGTH_RULES: Mapping[str, tuple[Callable[[Ints], Floats], float]] = {
    "length_ratio": (compute_ratios, 2),
    "length_deviation": (compute_deviations, 5),
}
"""Measures that must not exceed a threshold, and its default, by name of the rule."""
