"""Results of a search in plain Python."""

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.batch import BeamSearchResult


def hypothesis(row: tf.Tensor) -> tuple[int, ...]:
    """Returns the ids of a hypothesis without the padding behind it."""
    return tuple(np.trim_zeros(np.asarray(row), "b").tolist())


def found(result: BeamSearchResult) -> list[tuple[int, tuple[int, ...], float]]:
    """Lists the places that are filled: sentence, ids, score."""
    filled = np.argwhere(result.scores.numpy() > -1e6)
    return [
        (row, hypothesis(result.ids[row, place]), float(result.scores[row, place]))
        for row, place in filled
    ]
