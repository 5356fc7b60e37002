"""Samples follow the decoder's probabilities."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding.plain_constraints import PlainConstraints, as_tensors
from tests.decoding.results import all_hypotheses, hypothesis, sample
from tests.decoding.toy_decoders import EOS, LARGER, PAD, TableDecoder

SPEC = [
    tf.TensorSpec([None, 6], tf.float32),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int32),
]


@cache
def traced(
    samples: int,
    compact_at: float | None = 0.25,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 3,
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a sampler that is traced once for all batches, limits and keys."""
    settings = Sampling(1.3, top_k, top_p, seed)

    def draw(
        sources: tf.Tensor, limits: tf.Tensor, keys: tf.Tensor
    ) -> BeamSearchResult:
        return sample(
            LARGER,
            LARGER.start(sources, samples),
            DecodingConfig(nbest=samples, sampling=settings),
            limits,
            keys,
            compact_at=compact_at,
        )

    return tf.function(draw, SPEC, autograph=False)


def batch(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns random sources, limits and keys."""
    numbers = np.random.default_rng(6)
    limits = numbers.integers(0, 12, size=size).astype("int32")
    keys = numbers.integers(0, 2**31, size=size).astype("int32")
    return LARGER.sources(size, seed=6), limits, keys


def sample_tables(
    tables: np.ndarray | tf.Tensor,
    limit: int,
    samples: int = 1,
    constraints: Constraints | None = None,
    **options: float,
) -> BeamSearchResult:
    """Samples from tables of logits, float32 (batch, vocab, vocab)."""
    rows = tables.shape[0]
    return sample(
        TableDecoder(),
        tf.convert_to_tensor(tables),
        DecodingConfig(nbest=samples, sampling=Sampling(seed=3, **options)),
        limits=tf.constant([limit] * rows),
        keys=tf.range(rows),
        constraints=constraints,
    )


@pytest.mark.medium
def test_translations_have_the_probabilities_of_the_model() -> None:
    table = np.random.default_rng(8).normal(size=(4, 4)).astype("float32")
    result = sample_tables(np.stack([table] * 500), 2, samples=8)
    drawn = [ids for _, ids, _ in all_hypotheses(result)]
    weights = np.exp(table[:, 1:].astype("float64"))
    share = dict(enumerate(weights / weights.sum(axis=1, keepdims=True)))
    expected = {(EOS,): share[0][0]}
    for first in (2, 3):
        for second in (1, 2, 3):
            expected[first, second] = share[0][first - 1] * share[first][second - 1]
    assert set(drawn) == set(expected)
    chi_square = sum(
        (drawn.count(ids) - 4000 * p) ** 2 / (4000 * p) for ids, p in expected.items()
    )
    # 99.9 % of the chi-square distribution with 6 degrees of freedom.
    assert chi_square < 22.46


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (4, 0.9)])
def test_score_is_the_log_probability_under_the_model(top_k: int, top_p: float) -> None:
    sources, limits, keys = batch(16)
    result = traced(4, top_k=top_k, top_p=top_p)(sources, limits, keys)
    assert len(all_hypotheses(result)) == 64
    for row, ids, score in all_hypotheses(result):
        assert len(ids) == limits[row] or EOS in ids
        assert len(ids) <= limits[row]
        assert EOS not in ids[:-1]
        expected = LARGER.score(sources[row], ids, 0.0)
        np.testing.assert_allclose(score, expected, atol=2e-5)


def test_samples_do_not_depend_on_the_batch() -> None:
    sources, limits, keys = batch(24)
    draw = traced(4)
    together = draw(sources, limits, keys)
    order = np.random.default_rng(0).permutation(24)
    shuffled = draw(sources[order], limits[order], keys[order])
    for place, row in enumerate(order):
        one = slice(row, row + 1)
        alone = draw(sources[one], limits[one], keys[one])
        for number in range(4):
            ids = hypothesis(together.ids[row, number])
            assert hypothesis(alone.ids[0, number]) == ids
            assert hypothesis(shuffled.ids[place, number]) == ids
        np.testing.assert_allclose(alone.scores[0], together.scores[row], rtol=1e-5)


@pytest.mark.parametrize("compact_at", [None, 0.01, 1.0])
def test_compaction_does_not_change_the_results(
    compact_at: float | None,
) -> None:
    expected = traced(4)(*batch(24))
    result = traced(4, compact_at)(*batch(24))
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


def test_seed_key_and_sample_number_change_the_translation() -> None:
    sources, _, keys = batch(24)
    limits = np.full(24, 10, "int32")
    draw = traced(4)
    first = draw(sources, limits, keys)
    again = draw(sources, limits, keys)
    np.testing.assert_array_equal(again.ids, first.ids)
    others = [
        traced(4, seed=5)(sources, limits, keys),
        draw(sources, limits, keys + 1),
    ]
    for other in others:
        same = [
            hypothesis(other.ids[row, 0]) == hypothesis(first.ids[row, 0])
            for row in range(24)
        ]
        assert sum(same) < 12
    different = {hypothesis(ids) for ids in first.ids[0]}
    assert len(different) > 1


def test_top_k_of_one_is_greedy_search() -> None:
    sources, limits, keys = batch(16)
    result = traced(1, top_k=1)(sources, limits, keys)
    for row, (source, limit) in enumerate(zip(sources, limits, strict=True)):
        assert hypothesis(result.ids[row, 0]) == LARGER.greedy(source, limit)


def test_never_draws_pad() -> None:
    tables = np.random.default_rng(3).normal(size=(50, 6, 6)).astype("float32")
    tables[:, :, PAD] = 8.0
    for options in ({}, {"top_k": 1}, {"top_p": 0.5}):
        result = sample_tables(tables, 8, samples=2, **options)
        assert len(all_hypotheses(result)) == 100
        for _, ids, _ in all_hypotheses(result):
            assert ids
            assert PAD not in ids


@pytest.mark.parametrize("options", [{}, {"top_k": 3}])
def test_graph_of_any_size_of_the_vocabulary(options: dict[str, float]) -> None:
    tables = np.random.default_rng(4).normal(size=(5, 7, 7)).astype("float32")

    @tf.function(input_signature=[tf.TensorSpec([5, None, None])], autograph=False)
    def draw(tables: tf.Tensor) -> BeamSearchResult:
        return sample_tables(tables, 6, samples=2, **options)

    known = sample_tables(tables, 6, samples=2, **options)
    assert all_hypotheses(draw(tables)) == all_hypotheses(known)


def test_samples_meet_their_constraints() -> None:
    draw = np.random.default_rng(9)
    constraints = [
        PlainConstraints(
            min_length=int(draw.integers(0, 9)),
            prefix=tuple(draw.integers(2, 12, size=draw.integers(0, 4)).tolist()),
            n=2,
        )
        for _ in range(24)
    ]
    sources = LARGER.sources(24)
    result = sample(
        LARGER,
        LARGER.start(sources, 4),
        DecodingConfig(nbest=4, sampling=Sampling(seed=3)),
        limits=tf.fill([24], 10),
        keys=tf.range(24),
        constraints=as_tensors(constraints, 2),
    )
    assert len(all_hypotheses(result)) == 96
    for row, ids, score in all_hypotheses(result):
        assert constraints[row].allows(ids)
        expected = LARGER.score(sources[row], ids, 0.0)
        np.testing.assert_allclose(score, expected, atol=3e-5)


def test_prefix_that_ends_in_eos_is_the_result() -> None:
    tables = np.zeros([1, 4, 4], "float32")
    constraints = Constraints(prefixes=tf.constant([[3, EOS]]))
    result = sample_tables(tables, 6, samples=2, constraints=constraints)
    np.testing.assert_array_equal(result.ids, [[[3, EOS]] * 2])
    np.testing.assert_allclose(result.scores, [[-2 * np.log(4)] * 2], rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 0.9}])
def test_no_hypothesis_if_every_token_is_forbidden(
    options: dict[str, float],
) -> None:
    # Two tokens, each at most once, cannot fill five positions, but can fill zero.
    constraints = Constraints(min_lengths=tf.constant([5, 0]), no_repeat_ngram=1)
    tables = np.zeros([2, 4, 4], "float32")
    result = sample_tables(tables, 6, constraints=constraints, **options)
    np.testing.assert_array_equal(result.scores[0], [-1e7])
    assert not np.any(result.ids[0])
    assert result.scores[1, 0] > -1e6


def test_limit_zero_gives_the_empty_translation() -> None:
    result = sample_tables(np.zeros([2, 4, 4], "float32"), 0, samples=3)
    assert result.ids.shape == (2, 3, 0)
    np.testing.assert_array_equal(result.scores, np.zeros([2, 3]))


def test_empty_batch_has_an_empty_result() -> None:
    result = traced(4)(np.zeros([0, 6], "float32"), [], [])
    assert result.ids.shape == (0, 4, 0)
    assert result.scores.shape == (0, 4)
