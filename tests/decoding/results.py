"""Results of a search in plain Python."""

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding.toy_decoders import MemoryDecoder


def with_limits(
    search: DecodingConfig,
    decoder: MemoryDecoder,
    sources: tf.Tensor,
    limits: tf.Tensor,
    **settings: object,
) -> BeamSearchResult:
    """Searches as `generate` does, with limits of our choice."""
    return beam_search(
        decoder,
        decoder.start(sources, search.beam_size),
        search,
        limits,
        constraints=search.constraints(),
        **settings,
    )


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
