"""Weights of a model whose vocabulary was extended."""

from collections.abc import Mapping, Sequence

import numpy as np

_SIDES = {
    "embedding/table": "target",
    "embedding/bias": "target",
    "input_embedding/table": "source",
    "target_embedding/table": "target",
    "softmax/table": "target",
    "softmax/bias": "target",
}
"""Side of the vocabulary of each variable with one row per id."""


def extend_rows(
    name: str, value: np.ndarray, spellings: Mapping[str, Sequence[Sequence[int]]]
) -> np.ndarray:
    """Appends the rows of new pieces to a variable.

    Each new row of an embedding, the softmax table or its bias is the mean of the rows
    of the old pieces that spell the new one, computed in float64. All old rows, and
    variables without rows of the vocabulary, stay the same.

    Args:
        name: Name of the variable.
        value: float32 (old ids, ...).
        spellings: For "source" and "target", the old ids of each new id.

    Returns:
        float32 (new ids, ...).
    """
    new = spellings[_SIDES[name]] if name in _SIDES else ()
    if not new:
        return value
    means = [value[list(ids)].mean(axis=0, dtype=np.float64) for ids in new]
    return np.concatenate([value, np.asarray(means, value.dtype)])
