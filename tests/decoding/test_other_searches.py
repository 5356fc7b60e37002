"""Other programs' beam searches equal their plain forms and exhaustive search."""

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding import plain_search
from tests.decoding.results import hypothesis, with_limits
from tests.decoding.toy_decoders import EOS, LARGER, SMALL, MemoryDecoder

LIMITS = [9, 4, 6, 9, 1, 2, 7, 12, 3, 5, 8, 10]
NEVER = (3,)


def run_search(
    decoder: MemoryDecoder, sources: np.ndarray, search: DecodingConfig, **settings
):
    """Runs a search with `LIMITS`."""

    @tf.function(autograph=False)
    def run(sources: tf.Tensor, limits: tf.Tensor) -> BeamSearchResult:
        return with_limits(search, decoder, sources, limits, **settings)

    return run(tf.constant(sources), tf.constant(LIMITS))


def expected(
    decoder: MemoryDecoder, source: np.ndarray, limit: int, search: DecodingConfig
):
    """Returns the results of the plain search."""

    def log_probs(ids):
        return decoder.log_probs(source, ids)

    if search.algorithm == "marian":
        return plain_search.marian(
            log_probs,
            limit,
            search.beam_size,
            search.alpha,
            search.word_penalty,
            search.never,
        )
    others = {"transformers": plain_search.transformers}
    plain = (others | {"opennmt": plain_search.opennmt})[search.algorithm]
    return plain(log_probs, limit, search.beam_size, search.alpha, search.never)


@pytest.mark.parametrize(
    ("beam_size", "nbest", "alpha", "never", "settings"),
    [
        (1, 1, 0.0, (), {}),
        (1, 1, 1.0, NEVER, {"width": 12}),
        (4, 1, 0.6, NEVER, {}),
        (4, 1, 1.0, (), {"compact_at": None}),
        (4, 4, 0.0, NEVER, {}),
        (4, 4, 1.0, (), {"width": 12}),
    ],
)
@pytest.mark.parametrize("algorithm", ["marian", "transformers", "opennmt"])
def test_search_equals_the_plain_search(
    algorithm, beam_size, nbest, alpha, never, settings
):
    assert_equals_the_plain_search(
        DecodingConfig(beam_size, alpha, nbest=nbest, algorithm=algorithm, never=never),
        **settings,
    )


@pytest.mark.parametrize("word_penalty", [0.3, -0.4])
@pytest.mark.parametrize(("beam_size", "alpha"), [(1, 0.0), (4, 0.6)])
def test_marian_subtracts_a_word_penalty(beam_size, alpha, word_penalty):
    assert_equals_the_plain_search(
        DecodingConfig(
            beam_size,
            alpha,
            nbest=beam_size,
            algorithm="marian",
            word_penalty=word_penalty,
        )
    )


def assert_equals_the_plain_search(search, **settings):
    sources = LARGER.sources(len(LIMITS))
    result = run_search(LARGER, sources, search, **settings)
    lengths = set()
    for row, (source, limit) in enumerate(zip(sources, LIMITS, strict=True)):
        plain = expected(LARGER, source, limit, search)[: search.nbest]
        for rank, (score, ids, _) in enumerate(plain):
            assert hypothesis(result.ids[row, rank]) == ids
            np.testing.assert_allclose(result.scores[row, rank], score, atol=2e-5)
            lengths.add(len(ids))
    assert len(lengths) > 3


@pytest.mark.parametrize("algorithm", ["marian", "transformers"])
def test_wide_beam_equals_exhaustive_search(algorithm):
    search = DecodingConfig(81, 0.0, algorithm=algorithm)
    sources = SMALL.sources(len(LIMITS))
    limits = [min(limit, 4) for limit in LIMITS]
    result = with_limits(search, SMALL, sources, tf.constant(limits))
    for row, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        (score, ids), *_ = SMALL.exhaustive(source, limit, 0.0)
        # A hypothesis that is cut, or has a forced EOS, may have the best score.
        best = expected(SMALL, source, limit, search)[0]
        assert hypothesis(result.ids[row, 0]) == best.ids
        assert best.score >= score - 1e-9
        if best.ids[-1] == EOS and len(best.ids) < limit:
            assert best.ids == ids


def test_cut_hypotheses_compete_with_finished_ones():
    sources = LARGER.sources(64, seed=5)
    search = DecodingConfig(3, 1.0, nbest=3, algorithm="marian")
    result = with_limits(search, LARGER, sources, tf.fill([64], 3))
    cut, ended = 0, 0
    for row, source in enumerate(sources):
        plain = expected(LARGER, source, 3, search)
        assert [hypothesis(ids) for ids in result.ids[row]] == [h.ids for h in plain]
        first = {h.ids[-1] == EOS for h in plain}
        cut, ended = cut + (False in first), ended + (True in first)
    assert cut and ended


def test_limit_is_length_times_factor_plus_extra_length():
    marian = DecodingConfig(length_factor=3.0, extra_length=0, algorithm="marian")
    assert marian.longest(7) == 21
    assert marian.longest(tf.constant([7, 1])).numpy().tolist() == [21, 3]
    transformers = DecodingConfig(length_factor=0.0, extra_length=199)
    assert transformers.longest(tf.constant([7])).numpy().tolist() == [199]
    half = DecodingConfig(length_factor=1.1, extra_length=2)
    for length in range(1, 60):
        limit = math.ceil(np.float32(length) * np.float32(1.1)) + 2
        assert half.longest(length) == limit
        assert int(half.longest(tf.constant(length))) == limit


def test_converts_scores_to_log_probabilities_and_back():
    scoring = DecodingConfig(alpha=0.5, algorithm="marian", word_penalty=0.25).scoring
    # (-6 - 0.25 * 4) / 4^0.5
    assert scoring.score(-6.0, 4) == -3.5
    assert scoring.log_prob(-3.5, 4) == -6.0
    assert float(scoring.score(tf.constant(-6.0), tf.constant(4))) == -3.5
    sampling = DecodingConfig(
        sampling=Sampling(), algorithm="marian", word_penalty=0.25
    ).scoring
    assert sampling.score(-6.0, 4) == -6.0


def test_rejects_an_unknown_algorithm():
    with pytest.raises(ValueError, match=r"algorithm is .marina..*opennmt"):
        DecodingConfig(algorithm="marina")
