"""Marian's and Transformers' beam search against plain ones, on whatever toy is drawn.

Some symbols are twins, which nothing can tell apart: they make ties at every step.
"""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests import properties
from tests.decoding import plain_search
from tests.decoding.results import hypothesis, with_limits
from tests.decoding.toy_decoders import EOS, MemoryDecoder

NUMBERS = st.floats(-3, 3, width=32, allow_subnormal=False)
SOURCES = st.integers(1, 4).flatmap(
    lambda rows: arrays("float32", [rows, 6], elements=NUMBERS)
)
SEARCHES = [
    DecodingConfig(
        beam, alpha, nbest=beam, algorithm=name, word_penalty=penalty, never=never
    )
    for name, beam, alpha, penalty, never in (
        ("marian", 1, 0.0, 0.0, ()),
        ("marian", 3, 0.0, 0.3, (3,)),
        ("marian", 3, 0.6, 0.0, (4, 6)),
        ("marian", 4, 1.0, -0.4, ()),
        ("transformers", 1, 1.0, 0.0, ()),
        ("transformers", 3, 0.0, 0.0, (3,)),
        ("transformers", 3, 0.6, 0.0, (4, 6)),
        ("transformers", 4, 1.0, 0.0, ()),
    )
]


class TwinDecoder(MemoryDecoder):
    """Symbols 5 and 7 are 4 and 6 under another name."""

    twins = np.array([0, EOS, 2, 3, 4, 4, 6, 6, 8])

    def __init__(self) -> None:
        super().__init__(vocab_size=9, seed=3)
        self.embedding = self.embedding[self.twins]

    def step(self, ids, index, state):
        logits, state = super().step(ids, index, state)
        return tf.gather(logits, self.twins, axis=2), state

    def log_probs(self, source, prefix):
        # Rounded, since a product of matrices may end otherwise in two columns.
        found = super().log_probs(source, prefix).round(9)[self.twins]
        return found - np.log(np.exp(found).sum())


DECODER = TwinDecoder()


@cache
def searched(number: int):
    """Returns a search that is traced once for all sources and limits."""
    search = SEARCHES[number]

    def run(sources: tf.Tensor, limits: tf.Tensor) -> BeamSearchResult:
        return with_limits(search, DECODER, sources, limits)

    sources = tf.TensorSpec([None, 6], tf.float32)
    limits = tf.TensorSpec([None], tf.int32)
    return tf.function(run, input_signature=[sources, limits], autograph=False)


def plainly(number: int, source: np.ndarray, limit: int):
    """Returns what the plain search finds, and its smallest margin that is no tie."""
    search, margins = SEARCHES[number], [1.0]
    penalty = [search.word_penalty] if search.algorithm == "marian" else []
    found = getattr(plain_search, search.algorithm)(
        lambda ids: DECODER.log_probs(source, ids),
        limit,
        search.beam_size,
        search.alpha,
        *penalty,
        never=search.never,
        margins=margins,
    )
    return found, min(margins)


pytestmark = pytest.mark.medium

compared = {"all": 0, "twins": 0, "early": 0, "cut": 0}


@properties.checked
@given(SOURCES, st.integers(0, len(SEARCHES) - 1), st.data())
def check_it_finds_what_the_plain_search_finds(sources, number, data):
    rows = len(sources)
    numbers = st.lists(st.integers(1, 9), min_size=rows, max_size=rows)
    limits = data.draw(numbers, label="limits")
    result = searched(number)(sources, limits)
    for row, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        plain, margin = plainly(number, source, limit)
        if margin < 1e-5:  # Float32 may turn them.
            continue
        for place, (score, ids, _) in enumerate(plain):
            assert hypothesis(result.ids[row, place]) == ids
            np.testing.assert_allclose(result.scores[row, place], score, atol=2e-5)
        scores = [round(each.score, 9) for each in plain]
        compared["all"] += 1
        compared["twins"] += len({*scores}) < len(scores)
        compared["early"] += len(plain[0].ids) < limit
        compared["cut"] += plain[0].ids[-1] != EOS


def test_it_finds_what_the_plain_search_finds():
    """Also where there are ties, where it ends early, and where it is cut."""
    check_it_finds_what_the_plain_search_finds()
    assert all(number >= 5 for number in compared.values()), compared
