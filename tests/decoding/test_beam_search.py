"""Beam search equals a greedy loop, and sentences do not affect each other."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding.results import all_hypotheses, beam_search, hypothesis
from tests.decoding.toy_decoders import (
    LARGER,
    PAD,
    SMALL,
    MemoryDecoder,
    TableDecoder,
)


@cache
def traced(
    decoder: MemoryDecoder,
    beam_size: int,
    nbest: int = 1,
    compact_at: float | None = 0.25,
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a search that is traced once for all batch sizes and limits."""

    def search(sources: tf.Tensor, limits: tf.Tensor) -> BeamSearchResult:
        return beam_search(
            decoder,
            decoder.start(sources, beam_size),
            DecodingConfig(beam_size, alpha=0.6, nbest=nbest),
            limits,
            compact_at=compact_at,
        )

    sources = tf.TensorSpec([None, 6], tf.float32)
    limits = tf.TensorSpec([None], tf.int32)
    return tf.function(search, [sources, limits], autograph=False)


def test_missing_hypotheses_are_padding() -> None:
    result = traced(SMALL, beam_size=81, nbest=4)(SMALL.sources(1), [2])
    # Only four hypotheses end within two tokens: EOS, or one of three tokens and EOS.
    assert np.all(result.scores[0, :4] > -1e6)
    np.testing.assert_array_equal(result.scores[0, 4:], np.full(77, -1e7))
    np.testing.assert_array_equal(result.ids[0, 4:], np.zeros([77, 2]))


def test_best_hypothesis_does_not_depend_on_nbest() -> None:
    sources = LARGER.sources(32)
    limits = [10] * 32
    one = traced(LARGER, beam_size=4)(sources, limits)
    four = traced(LARGER, beam_size=4, nbest=4)(sources, limits)
    for row in range(32):
        assert hypothesis(one.ids[row, 0]) == hypothesis(four.ids[row, 0])
    np.testing.assert_array_equal(one.scores[:, 0], four.scores[:, 0])
    assert np.all(np.diff(four.scores) <= 0)


def test_beam_size_one_is_greedy_search() -> None:
    sources = LARGER.sources(16, seed=5)
    limits = [9, 1, 4, 9] * 4
    result = traced(LARGER, beam_size=1)(sources, limits)
    for row, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        ids = LARGER.greedy(source, limit)
        assert hypothesis(result.ids[row, 0]) == ids
        expected = LARGER.score(source, ids, 0.6)
        np.testing.assert_allclose(result.scores[row, 0], expected, atol=1e-5)


def test_results_do_not_depend_on_the_batch() -> None:
    sources = LARGER.sources(24, seed=6)
    limits = np.random.default_rng(6).integers(1, 12, size=24).astype("int32")
    search = traced(LARGER, beam_size=4)
    together = search(sources, limits)
    order = np.random.default_rng(0).permutation(24)
    shuffled = search(sources[order], limits[order])
    for rank, row in enumerate(order):
        alone = search(sources[row : row + 1], limits[row : row + 1])
        for other in (alone.ids[0], shuffled.ids[rank]):
            for beam in range(4):
                assert hypothesis(other[beam]) == hypothesis(together.ids[row, beam])
        np.testing.assert_allclose(alone.scores[0], together.scores[row], rtol=1e-5)


@pytest.mark.parametrize("compact_at", [None, 0.01, 1.0])
def test_compaction_does_not_change_the_results(
    compact_at: float | None,
) -> None:
    sources = LARGER.sources(24, seed=6)
    limits = np.random.default_rng(6).integers(0, 12, size=24).astype("int32")
    expected = traced(LARGER, beam_size=4)(sources, limits)
    result = traced(LARGER, beam_size=4, compact_at=compact_at)(sources, limits)
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


def test_never_produces_pad() -> None:
    tables = np.random.default_rng(3).normal(size=(6, 9, 9)).astype("float32")
    tables[:, :, PAD] = 5.0
    result = beam_search(
        TableDecoder(),
        tf.constant(tables),
        DecodingConfig(3, alpha=0.6, nbest=3),
        limits=tf.constant([8] * 6),
    )
    assert len(all_hypotheses(result)) >= 6
    for _, ids, _ in all_hypotheses(result):
        assert ids
        assert PAD not in ids


def test_scores_a_hypothesis_that_is_cut_at_its_limit() -> None:
    # Token 2 is always the most probable, and EOS is very improbable.
    table = np.full([4, 4], -30.0, "float32")
    table[:, 2], table[:, 3] = 2.0, 1.0
    limits = [1, 4, 0, 7]
    result = beam_search(
        TableDecoder(),
        tf.constant(np.stack([table] * 4)),
        DecodingConfig(1, alpha=1.0),
        limits=tf.constant(limits),
    )
    assert [len(hypothesis(ids)) for ids in result.ids[:, 0]] == limits
    step = 2.0 - np.log(np.exp(2.0) + np.exp(1.0))
    expected = [n * step / ((5 + n) / 6) for n in limits]
    np.testing.assert_allclose(result.scores[:, 0], expected, rtol=1e-5, atol=1e-7)


def test_empty_batch_has_an_empty_result() -> None:
    result = traced(LARGER, beam_size=4)(np.zeros([0, 6], "float32"), [])
    assert result.ids.shape == (0, 4, 0)
    assert result.scores.shape == (0, 4)
