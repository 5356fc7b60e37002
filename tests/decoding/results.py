"""Runs searches, and converts their results to plain Python."""

import numpy as np
import tensorflow as tf

from t2t_repro.decoding import beam_search as searches
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult, decode_batch
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.decoding.sampling import sampling_search
from tests.decoding.toy_decoders import MemoryDecoder


def beam_search(
    decoder: StepwiseDecoder,
    state: State,
    config: DecodingConfig,
    limits: tf.Tensor,
    *,
    constraints: Constraints | None = None,
    terms: Terms | None = None,
    width: int | None = None,
    compact_at: float | None = 0.25,
) -> BeamSearchResult:
    """Runs a beam search."""
    search = searches.beam_search(config, limits, constraints, terms, width)
    return decode_batch(search, decoder, state, compact_at, width)


def sample(
    decoder: StepwiseDecoder,
    state: State,
    config: DecodingConfig,
    limits: tf.Tensor,
    keys: tf.Tensor,
    *,
    constraints: Constraints | None = None,
    compact_at: float | None = 0.25,
) -> BeamSearchResult:
    """Runs a sampler."""
    search = sampling_search(config, limits, keys, constraints)
    return decode_batch(search, decoder, state, compact_at)


def with_limits(
    search: DecodingConfig,
    decoder: MemoryDecoder,
    sources: tf.Tensor,
    limits: tf.Tensor,
    **settings: object,
) -> BeamSearchResult:
    """Runs a beam search as `generate` does, but with other limits."""
    return beam_search(
        decoder,
        decoder.start(sources, search.beam_size),
        search,
        limits,
        constraints=search.constraints(),
        **settings,
    )


def hypothesis(row: tf.Tensor) -> tuple[int, ...]:
    """Returns the ids of a hypothesis without padding."""
    return tuple(np.trim_zeros(np.asarray(row), "b").tolist())


def all_hypotheses(
    result: BeamSearchResult,
) -> list[tuple[int, tuple[int, ...], float]]:
    """Lists the sentence, ids and score of each hypothesis that is not missing."""
    ids, scores = np.asarray(result.ids), np.asarray(result.scores)
    return [
        (row, hypothesis(ids[row, place]), float(scores[row, place]))
        for row, place in np.argwhere(scores > -1e6)
    ]
