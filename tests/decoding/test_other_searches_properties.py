"""Marian's and Transformers' beam searches equal their plain forms for random sources.

Some tokens always have equal probabilities, which causes ties at every step.
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
    """Decoder in which tokens 5 and 7 are copies of tokens 4 and 6."""

    twins = np.array([0, EOS, 2, 3, 4, 4, 6, 6, 8])

    def __init__(self) -> None:
        super().__init__(vocab_size=9, seed=3)
        self.embedding = self.embedding[self.twins]

    def step(self, ids, index, state):
        logits, state = super().step(ids, index, state)
        return tf.gather(logits, self.twins, axis=2), state

    def log_probs(self, source, prefix):
        # Rounded, because a matmul may round two equal columns differently.
        scores = super().log_probs(source, prefix).round(9)[self.twins]
        return scores - np.log(np.exp(scores).sum())


DECODER = TwinDecoder()


@cache
def traced_search(number: int):
    """Returns a search that is traced once for all sources and limits."""
    search = SEARCHES[number]

    def run(sources: tf.Tensor, limits: tf.Tensor) -> BeamSearchResult:
        return with_limits(search, DECODER, sources, limits)

    sources = tf.TensorSpec([None, 6], tf.float32)
    limits = tf.TensorSpec([None], tf.int32)
    return tf.function(run, input_signature=[sources, limits], autograph=False)


def plain_results(number: int, source: np.ndarray, limit: int):
    """Returns the plain search's results and its smallest nonzero score difference."""
    search, margins = SEARCHES[number], [1.0]
    penalty = [search.word_penalty] if search.algorithm == "marian" else []
    results = getattr(plain_search, search.algorithm)(
        lambda ids: DECODER.log_probs(source, ids),
        limit,
        search.beam_size,
        search.alpha,
        *penalty,
        never=search.never,
        margins=margins,
    )
    return results, min(margins)


pytestmark = pytest.mark.medium

compared = {"all": 0, "twins": 0, "early": 0, "cut": 0}


@properties.checked
@given(SOURCES, st.integers(0, len(SEARCHES) - 1), st.data())
def check_search_equals_the_plain_search(sources, number, data):
    rows = len(sources)
    numbers = st.lists(st.integers(1, 9), min_size=rows, max_size=rows)
    limits = data.draw(numbers, label="limits")
    ids, scores = (each.numpy() for each in traced_search(number)(sources, limits))
    for row, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        plain, margin = plain_results(number, source, limit)
        if margin < 1e-5:  # float32 may change their order.
            continue
        for rank, (score, expected, _) in enumerate(plain):
            assert hypothesis(ids[row, rank]) == expected
            np.testing.assert_allclose(scores[row, rank], score, atol=2e-5)
        rounded = [round(each.score, 9) for each in plain]
        compared["all"] += 1
        compared["twins"] += len({*rounded}) < len(rounded)
        compared["early"] += len(plain[0].ids) < limit
        compared["cut"] += plain[0].ids[-1] != EOS


def test_search_equals_the_plain_search():
    """Covers ties, searches that end early, and hypotheses that are cut."""
    check_search_equals_the_plain_search()
    assert all(number >= 5 for number in compared.values()), compared
