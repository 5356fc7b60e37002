"""Constrained search equals exhaustive search and a greedy loop in NumPy."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding.plain_constraints import PlainConstraints, as_tensors, greedy
from tests.decoding.results import all_hypotheses, beam_search, hypothesis
from tests.decoding.toy_decoders import (
    EOS,
    LARGER,
    SMALL,
    MemoryDecoder,
    TableDecoder,
)

LIMITS = [5, 3, 4, 5, 1, 2, 5, 4]
MIN_LENGTHS = [3, 2, 4, 5, 1, 0, 1, 3]
PREFIXES = [(2,), (3, 4), (), (2, 3, 2), (), (4, EOS), (EOS,), (3, 3)]
SPEC = {
    "sources": tf.TensorSpec([None, 6], tf.float32),
    "limits": tf.TensorSpec([None], tf.int32),
    "min_lengths": tf.TensorSpec([None], tf.int32),
    "prefixes": tf.TensorSpec([None, None], tf.int32),
}


@cache
def traced(
    decoder: MemoryDecoder,
    beam_size: int,
    n: int,
    nbest: int = 1,
    compact_at: float | None = 0.25,
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a constrained search that is traced once for all batches."""

    def search(
        sources: tf.Tensor,
        limits: tf.Tensor,
        min_lengths: tf.Tensor,
        prefixes: tf.Tensor,
    ) -> BeamSearchResult:
        return beam_search(
            decoder,
            decoder.start(sources, beam_size),
            DecodingConfig(beam_size, alpha=0.6, nbest=nbest),
            limits,
            constraints=Constraints(min_lengths, prefixes, n),
            compact_at=compact_at,
        )

    return tf.function(search, list(SPEC.values()), autograph=False)


def run(
    search: tf.types.experimental.PolymorphicFunction,
    sources: np.ndarray,
    limits: list[int],
    constraints: list[PlainConstraints],
) -> BeamSearchResult:
    """Calls a traced search with the constraints of each sentence."""
    arrays = as_tensors(constraints, 0)
    return search(sources, limits, arrays.min_lengths, arrays.prefixes)


def random_batch(
    batch: int, n: int
) -> tuple[np.ndarray, list[int], list[PlainConstraints]]:
    """Returns random sources, limits and constraints of each sentence."""
    draw = np.random.default_rng(n)
    limits = draw.integers(3, 12, size=batch).astype("int32")
    constraints = [
        PlainConstraints(
            min_length=int(draw.integers(0, limit)),
            prefix=tuple(draw.integers(2, 12, size=draw.integers(0, 3)).tolist()),
            n=n,
        )
        for limit in limits
    ]
    return LARGER.sources(batch, seed=n), limits.tolist(), constraints


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("which", ["none", "min_length", "prefix", "both"])
def test_wide_beam_equals_exhaustive_search(which: str, n: int) -> None:
    constraints = [
        PlainConstraints(
            min_length=min_length if which in ("min_length", "both") and n != 1 else 0,
            prefix=prefix if which in ("prefix", "both") else (),
            n=n,
        )
        for min_length, prefix in zip(MIN_LENGTHS, PREFIXES, strict=True)
    ]
    sources = SMALL.sources(len(LIMITS))
    result = run(traced(SMALL, 81, n, nbest=4), sources, LIMITS, constraints)
    hypotheses = all_hypotheses(result)
    for row, (source, limit) in enumerate(zip(sources, LIMITS, strict=True)):
        every = SMALL.exhaustive(source, limit, 0.6)
        expected = [
            (score, ids) for score, ids in every if constraints[row].allows(ids)
        ]
        assert expected
        best = [(ids, score) for n, ids, score in hypotheses if n == row][:4]
        assert [ids for ids, _ in best] == [ids for _, ids in expected[:4]]
        np.testing.assert_allclose(
            [score for _, score in best],
            [score for score, _ in expected[:4]],
            atol=2e-5,
        )


@pytest.mark.parametrize("n", [0, 2])
def test_beam_size_one_is_greedy_search(n: int) -> None:
    sources, limits, constraints = random_batch(24, n)
    result = run(traced(LARGER, 1, n), sources, limits, constraints)
    for row, source in enumerate(sources):
        ids = greedy(LARGER, source, limits[row], constraints[row])
        assert hypothesis(result.ids[row, 0]) == ids
        np.testing.assert_allclose(
            result.scores[row, 0], LARGER.score(source, ids, 0.6), atol=2e-5
        )


def test_hypotheses_are_allowed_and_scores_include_prefixes() -> None:
    sources, limits, constraints = random_batch(24, 2)
    result = run(traced(LARGER, 4, 2, nbest=4), sources, limits, constraints)
    assert len(all_hypotheses(result)) > 48
    for row, ids, score in all_hypotheses(result):
        assert constraints[row].allows(ids)
        assert len(ids) <= limits[row]
        expected = LARGER.score(sources[row], ids, 0.6)
        np.testing.assert_allclose(score, expected, atol=2e-5)


@pytest.mark.parametrize("compact_at", [None, 0.01, 1.0])
def test_compaction_keeps_the_constraints_of_each_sentence(
    compact_at: float | None,
) -> None:
    batch = random_batch(24, 2)
    expected = run(traced(LARGER, 4, 2), *batch)
    result = run(traced(LARGER, 4, 2, compact_at=compact_at), *batch)
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


def search_tables(
    tables: np.ndarray, limit: int, **options: object
) -> BeamSearchResult:
    """Searches tables of logits, float32 (batch, vocab, vocab), with alpha 0."""
    arguments = {
        name: options.pop(name)
        for name in ("constraints", "width", "compact_at")
        if name in options
    }
    return beam_search(
        TableDecoder(),
        tf.constant(tables),
        DecodingConfig(**{"beam_size": 3, "alpha": 0.0, **options}),
        limits=tf.constant([limit] * len(tables)),
        **arguments,
    )


def random_tables(batch: int, vocab: int) -> np.ndarray:
    draw = np.random.default_rng(5)
    return draw.normal(size=(batch, vocab, vocab)).astype("float32")


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(),
        Constraints(min_lengths=tf.constant(0)),
        Constraints(prefixes=tf.zeros([4, 0], tf.int32)),
        Constraints(prefixes=tf.zeros([4, 3], tf.int32)),
        Constraints(no_repeat_ngram=9),
    ],
)
def test_neutral_constraints_do_not_change_the_results(
    constraints: Constraints,
) -> None:
    tables = random_tables(4, 7)
    expected = search_tables(tables, 8, nbest=3)
    result = search_tables(tables, 8, nbest=3, constraints=constraints)
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_minimum_lengths_have_a_fast_path_with_equal_results(beam_size: int) -> None:
    """Prefixes select the general path, even if they are empty."""
    tables = random_tables(8, 7)
    tables[:, :, EOS] += 2  # Makes most hypotheses end at once.
    min_lengths = tf.constant([0, 1, 2, 3, 4, 5, 6, 9])
    fast = Constraints(min_lengths)
    assert fast.only_tokens
    slow = Constraints(min_lengths, tf.zeros([8, 0], tf.int32))
    assert not slow.only_tokens
    result, expected = (
        search_tables(tables, 8, beam_size=beam_size, nbest=beam_size, constraints=c)
        for c in (fast, slow)
    )
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)
    lengths = tf.math.count_nonzero(result.ids[:, 0], axis=1).numpy()
    assert (lengths >= np.minimum(min_lengths, 8)).all()
    assert lengths.min() == 1


def test_scores_an_improbable_prefix() -> None:
    table = np.zeros([1, 4, 4], "float32")
    table[:, :, 3] = -200.0  # exp(-200) is 0 in float32.
    constraints = Constraints(prefixes=tf.constant([[3, 3, EOS]]))
    result = search_tables(table, 5, constraints=constraints)
    assert hypothesis(result.ids[0, 0]) == (3, 3, EOS)
    # The other three tokens have equal probabilities, so the log probabilities of the
    # prefix are -200 - ln 3 for each token 3, and -ln 3 for EOS.
    np.testing.assert_allclose(result.scores[0, 0], -400 - 3 * np.log(3), rtol=1e-6)
    np.testing.assert_array_equal(result.scores[0, 1:], [-1e7, -1e7])


def test_prefix_longer_than_the_limit_is_cut() -> None:
    table = np.zeros([1, 4, 4], "float32")
    constraints = Constraints(prefixes=tf.constant([[3, 2, 3, 2]]))
    result = search_tables(table, 2, constraints=constraints)
    assert hypothesis(result.ids[0, 0]) == (3, 2)
    np.testing.assert_allclose(result.scores[0, 0], -2 * np.log(4), rtol=1e-6)


def test_hypotheses_that_must_not_end_are_cut_at_the_limit() -> None:
    tables = random_tables(4, 7)
    tables[:, :, EOS] = 9.0
    constraints = Constraints(min_lengths=tf.constant([9, 9, 0, 9]))
    result = search_tables(tables, 3, beam_size=1, constraints=constraints)
    lengths = [len(hypothesis(ids)) for ids in result.ids[:, 0]]
    assert lengths == [3, 3, 1, 3]
    assert all(EOS not in hypothesis(result.ids[row, 0]) for row in (0, 1, 3))


def test_no_hypothesis_if_every_token_is_forbidden() -> None:
    # Two tokens, each at most once, cannot fill five positions.
    too_short = Constraints(min_lengths=tf.constant(5), no_repeat_ngram=1)
    outside = Constraints(prefixes=tf.constant([[2, 4]]))
    for constraints in (too_short, outside):
        result = search_tables(random_tables(1, 4), 6, constraints=constraints)
        np.testing.assert_array_equal(result.scores, [[-1e7] * 3])
        assert not np.any(result.ids)


def operations(constraints: Constraints | None) -> set[str]:
    """Returns the types of operations in a traced search, loops included."""

    def search() -> BeamSearchResult:
        return search_tables(random_tables(4, 7), 8, constraints=constraints)

    concrete = tf.function(search, autograph=False).get_concrete_function()
    graph = concrete.graph.as_graph_def()
    bodies = [body.node_def for body in graph.library.function]
    return {node.op for nodes in (graph.node, *bodies) for node in nodes}


def test_unconstrained_search_has_fewer_operations() -> None:
    extra = operations(Constraints(no_repeat_ngram=2)) - operations(None)
    # Only the mask, and log-sum-exp over the whole vocabulary, have these operations.
    assert {"Roll", "ScatterNd", "Exp"} <= extra


class Completer(tf.Module):
    """A module to export that completes prefixes."""

    def __init__(self) -> None:
        super().__init__()
        self.search = traced(LARGER, 4, 2)


def test_exported_module_completes_prefixes(tmp_path: Path) -> None:
    completer = Completer()
    tf.saved_model.save(completer, str(tmp_path / "export"))
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    sources, limits, constraints = random_batch(5, 2)
    arrays = as_tensors(constraints, 2)
    arguments = (tf.constant(sources), tf.constant(limits))
    arguments += (arrays.min_lengths, arrays.prefixes)
    expected, result = completer.search(*arguments), loaded.search(*arguments)
    np.testing.assert_array_equal(result[0], expected.ids)
    np.testing.assert_array_equal(result[1], expected.scores)
