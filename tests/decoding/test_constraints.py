"""Constrained search against exhaustive search and a greedy loop in NumPy."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests.decoding.asked import SentenceInputs, greedy, tensors
from tests.decoding.results import beam_search, found, hypothesis
from tests.decoding.toy_decoders import (
    EOS,
    LARGER,
    SMALL,
    MemoryDecoder,
    TableDecoder,
)

LIMITS = [5, 3, 4, 5, 1, 2, 5, 4]
LEASTS = [3, 2, 4, 5, 1, 0, 1, 3]
PREFIXES = [(2,), (3, 4), (), (2, 3, 2), (), (4, EOS), (EOS,), (3, 3)]
SPEC = {
    "sources": tf.TensorSpec([None, 6], tf.float32),
    "limits": tf.TensorSpec([None], tf.int32),
    "least": tf.TensorSpec([None], tf.int32),
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
    """Returns the constrained search, traced once for all batches."""

    def search(
        sources: tf.Tensor, limits: tf.Tensor, least: tf.Tensor, prefixes: tf.Tensor
    ) -> BeamSearchResult:
        return beam_search(
            decoder,
            decoder.start(sources, beam_size),
            DecodingConfig(beam_size, alpha=0.6, nbest=nbest),
            limits,
            constraints=Constraints(least, prefixes, n),
            compact_at=compact_at,
        )

    return tf.function(search, input_signature=list(SPEC.values()))


def run(
    search: tf.types.experimental.PolymorphicFunction,
    sources: np.ndarray,
    limits: list[int],
    asked: list[SentenceInputs],
) -> BeamSearchResult:
    """Calls a traced search with what is asked of each sentence."""
    constraints = tensors(asked, 0)
    return search(sources, limits, constraints.min_lengths, constraints.prefixes)


def drawn(batch: int, n: int) -> tuple[np.ndarray, list[int], list[SentenceInputs]]:
    """Draws sources, limits and what is asked of each sentence, for vocabulary 12."""
    draw = np.random.default_rng(n)
    limits = draw.integers(3, 12, size=batch).astype("int32")
    asked = [
        SentenceInputs(
            least=int(draw.integers(0, limit)),
            prefix=tuple(draw.integers(2, 12, size=draw.integers(0, 3)).tolist()),
            n=n,
        )
        for limit in limits
    ]
    return LARGER.sources(batch, seed=n), limits.tolist(), asked


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("which", ["none", "least", "prefix", "both"])
def test_a_wide_beam_finds_what_exhaustive_search_finds(which: str, n: int) -> None:
    asked = [
        SentenceInputs(
            least=least if which in ("least", "both") and n != 1 else 0,
            prefix=prefix if which in ("prefix", "both") else (),
            n=n,
        )
        for least, prefix in zip(LEASTS, PREFIXES, strict=True)
    ]
    sources = SMALL.sources(len(LIMITS))
    result = run(traced(SMALL, 81, n, nbest=4), sources, LIMITS, asked)
    places = found(result)
    for row, (source, limit) in enumerate(zip(sources, LIMITS, strict=True)):
        every = SMALL.exhaustive(source, limit, 0.6)
        expected = [(score, ids) for score, ids in every if asked[row].holds(ids)]
        assert expected
        here = [(ids, score) for at, ids, score in places if at == row][:4]
        assert [ids for ids, _ in here] == [ids for _, ids in expected[:4]]
        np.testing.assert_allclose(
            [score for _, score in here],
            [score for score, _ in expected[:4]],
            atol=2e-5,
        )


@pytest.mark.parametrize("n", [0, 2])
def test_beam_one_is_greedy_search(n: int) -> None:
    sources, limits, asked = drawn(24, n)
    result = run(traced(LARGER, 1, n), sources, limits, asked)
    for row, source in enumerate(sources):
        ids = greedy(LARGER, source, limits[row], asked[row])
        assert hypothesis(result.ids[row, 0]) == ids
        np.testing.assert_allclose(
            result.scores[row, 0], LARGER.score(source, ids, 0.6), atol=2e-5
        )


def test_every_hypothesis_is_as_asked_and_scored_as_a_whole() -> None:
    sources, limits, asked = drawn(24, 2)
    result = run(traced(LARGER, 4, 2, nbest=4), sources, limits, asked)
    assert len(found(result)) > 48
    for row, ids, score in found(result):
        assert asked[row].holds(ids)
        assert len(ids) <= limits[row]
        expected = LARGER.score(sources[row], ids, 0.6)
        np.testing.assert_allclose(score, expected, atol=2e-5)


@pytest.mark.parametrize("compact_at", [None, 0.01, 1.0])
def test_constraints_leave_the_batch_with_their_sentences(
    compact_at: float | None,
) -> None:
    batch = drawn(24, 2)
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
def test_constraints_that_ask_nothing_change_nothing(constraints: Constraints) -> None:
    tables = random_tables(4, 7)
    expected = search_tables(tables, 8, nbest=3)
    result = search_tables(tables, 8, nbest=3, constraints=constraints)
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_least_lengths_alone_are_the_quick_way_to_the_same(beam_size: int) -> None:
    """Prefixes of no symbols ask nothing, but take the general way."""
    tables = random_tables(8, 7)
    tables[:, :, EOS] += 2  # Most would like to end at once.
    least = tf.constant([0, 1, 2, 3, 4, 5, 6, 9])
    quick = Constraints(least)
    assert quick.only_tokens
    slow = Constraints(least, tf.zeros([8, 0], tf.int32))
    assert not slow.only_tokens
    result, expected = (
        search_tables(tables, 8, beam_size=beam_size, nbest=beam_size, constraints=c)
        for c in (quick, slow)
    )
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)
    lengths = tf.math.count_nonzero(result.ids[:, 0], axis=1).numpy()
    assert (lengths >= np.minimum(least, 8)).all()
    assert lengths.min() == 1


def test_a_prefix_is_scored_however_improbable_it_is() -> None:
    table = np.zeros([1, 4, 4], "float32")
    table[:, :, 3] = -200.0  # exp(-200) is 0 in float32.
    constraints = Constraints(prefixes=tf.constant([[3, 3, EOS]]))
    result = search_tables(table, 5, constraints=constraints)
    assert hypothesis(result.ids[0, 0]) == (3, 3, EOS)
    # Three symbols share the probability: -200 - ln 3 twice, then -ln 3.
    np.testing.assert_allclose(result.scores[0, 0], -400 - 3 * np.log(3), rtol=1e-6)
    np.testing.assert_array_equal(result.scores[0, 1:], [-1e7, -1e7])


def test_a_prefix_longer_than_the_limit_is_cut_there() -> None:
    table = np.zeros([1, 4, 4], "float32")
    constraints = Constraints(prefixes=tf.constant([[3, 2, 3, 2]]))
    result = search_tables(table, 2, constraints=constraints)
    assert hypothesis(result.ids[0, 0]) == (3, 2)
    np.testing.assert_allclose(result.scores[0, 0], -2 * np.log(4), rtol=1e-6)


def test_hypotheses_that_may_not_end_in_time_are_cut_at_the_limit() -> None:
    tables = random_tables(4, 7)
    tables[:, :, EOS] = 9.0
    constraints = Constraints(min_lengths=tf.constant([9, 9, 0, 9]))
    result = search_tables(tables, 3, beam_size=1, constraints=constraints)
    lengths = [len(hypothesis(ids)) for ids in result.ids[:, 0]]
    assert lengths == [3, 3, 1, 3]
    assert all(EOS not in hypothesis(result.ids[row, 0]) for row in (0, 1, 3))


def test_where_nothing_may_follow_there_is_no_hypothesis() -> None:
    # Two symbols, none of them twice, and no end before the fifth place.
    alone = Constraints(min_lengths=tf.constant(5), no_repeat_ngram=1)
    outside = Constraints(prefixes=tf.constant([[2, 4]]))
    for constraints in (alone, outside):
        result = search_tables(random_tables(1, 4), 6, constraints=constraints)
        np.testing.assert_array_equal(result.scores, [[-1e7] * 3])
        assert not np.any(result.ids)


def operations(constraints: Constraints | None) -> set[str]:
    """Names the kinds of operation in a traced search, loops included."""

    def search() -> BeamSearchResult:
        return search_tables(random_tables(4, 7), 8, constraints=constraints)

    concrete = tf.function(search, autograph=False).get_concrete_function()
    graph = concrete.graph.as_graph_def()
    bodies = [body.node_def for body in graph.library.function]
    return {node.op for nodes in (graph.node, *bodies) for node in nodes}


def test_a_search_without_constraints_pays_nothing_for_them() -> None:
    extra = operations(Constraints(no_repeat_ngram=2)) - operations(None)
    # What only the mask and the normaliser over the whole vocabulary are made of.
    assert {"Roll", "ScatterNd", "Exp"} <= extra


class Completer(tf.Module):
    """Completes beginnings; exported."""

    def __init__(self) -> None:
        super().__init__()
        self.search = traced(LARGER, 4, 2)


def test_an_exported_module_completes_prefixes(tmp_path: Path) -> None:
    completer = Completer()
    tf.saved_model.save(completer, str(tmp_path / "export"))
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    sources, limits, asked = drawn(5, 2)
    constraints = tensors(asked, 2)
    arguments = (tf.constant(sources), tf.constant(limits))
    arguments += (constraints.min_lengths, constraints.prefixes)
    expected, result = completer.search(*arguments), loaded.search(*arguments)
    np.testing.assert_array_equal(result[0], expected.ids)
    np.testing.assert_array_equal(result[1], expected.scores)


def test_xla_compiles_the_constrained_search_when_the_sizes_are_fixed() -> None:
    tables = random_tables(4, 7)
    constraints = Constraints(
        min_lengths=tf.constant([6, 0, 8, 3]),
        prefixes=tf.constant([[3, 0], [2, 5], [0, 0], [4, EOS]]),
        no_repeat_ngram=2,
    )

    def search() -> BeamSearchResult:
        return search_tables(
            tables, 8, compact_at=None, width=8, constraints=constraints
        )

    expected = search()
    result = tf.function(search, jit_compile=True)()
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


def test_what_cannot_be_asked_is_named() -> None:
    with pytest.raises(ValueError, match="no_repeat_ngram is -1"):
        Constraints(no_repeat_ngram=-1)
    with pytest.raises(ValueError, match="tensor2tensor_rules"):
        search_tables(
            random_tables(1, 4), 3, tensor2tensor_rules=True, constraints=Constraints()
        )
