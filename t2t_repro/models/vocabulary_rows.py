"""Weights of a model whose vocabulary was extended or replaced."""

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


def spell_rows(
    name: str, value: np.ndarray, spellings: Mapping[str, Sequence[Sequence[int]]]
) -> np.ndarray:
    """Returns the rows of a new vocabulary's pieces.

    A piece of the old vocabulary, whose spelling is one id, keeps its row of an
    embedding, of the softmax table or of its bias. The row of any other piece is the
    mean of the rows of the old pieces that spell it, computed in float64. Variables
    without rows of the vocabulary stay the same.

    Args:
        name: Name of the variable.
        value: float32 (old ids, ...).
        spellings: For "source" and "target", the old ids of each new id.

    Returns:
        float32 (new ids, ...).
    """
    if name not in _SIDES:
        return value
    rows = [
        value[ids[0]]
        if len(ids) == 1
        else value[list(ids)].mean(axis=0, dtype=np.float64)
        for ids in spellings[_SIDES[name]]
    ]
    return np.asarray(rows, value.dtype)
