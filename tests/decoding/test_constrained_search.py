"""Beam search with lexical constraints equals exhaustive search."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.lexical_constraints import Terms
from tests.decoding.results import hypothesis, with_limits
from tests.decoding.toy_decoders import EOS, LARGER, SMALL, MemoryDecoder

Ids = tuple[int, ...]


def terms_of(terms_of_rows: list[list[Ids]], vocab: int, joins=(), joined=()) -> Terms:
    """Returns `Terms` of the rows.

    Tokens in `joins` end inside of a word, and tokens in `joined` begin inside of one.
    """
    count = max(len(terms) for terms in terms_of_rows)
    length = max((len(term) for terms in terms_of_rows for term in terms), default=1)
    ids = np.zeros((len(terms_of_rows), count, length), np.int32)
    for row, terms in zip(ids, terms_of_rows, strict=True):
        for padded, term in zip(row, terms, strict=False):
            padded[: len(term)] = term
    flags = [[n in which for n in range(vocab)] for which in (joins, joined)]
    return Terms(tf.constant(ids), *map(tf.constant, flags))


@cache
def traced(decoder: MemoryDecoder, search: DecodingConfig):
    """Returns a search that is traced once for all sentences and terms."""
    marks = tf.TensorSpec([decoder.vocab_size], tf.bool)
    terms = Terms(tf.TensorSpec([None, None, None], tf.int32), marks, marks)

    def run(sources, terms):
        # For an input of one token, the length limit is 1 + extra_length.
        limits = tf.fill([tf.shape(sources)[0]], search.longest(1))
        return with_limits(search, decoder, sources, limits, terms=terms)

    sources = tf.TensorSpec([None, 6], tf.float32)
    return tf.function(run, input_signature=[sources, terms], autograph=False)


def contains_terms(ids: Ids, terms: list[Ids], joins=(), joined=()) -> bool:
    """Returns whether a hypothesis has all terms as whole words, without overlap."""

    def matches(start: int, term: Ids) -> bool:
        end = start + len(term)
        if ids[start:end] != term:
            return False
        before, after = ids[start - 1] if start else 0, ids[end]
        opened = before not in joins and term[0] not in joined
        return opened and term[-1] not in joins and after not in joined

    def can_place(remaining: list[Ids], used: frozenset[int]) -> bool:
        if not remaining:
            return True
        term, *others = remaining
        for start in range(len(ids) - len(term)):
            span = frozenset(range(start, start + len(term)))
            free = not span & used and matches(start, term)
            if free and can_place(others, used | span):
                return True
        return False

    return can_place(terms, frozenset())


CASES = [
    [(2,)],
    [(3,), (4,)],
    [(2, 3)],
    [(4, 4), (2,)],
    [(3, 2, 4)],
    [],
    [(2,), (3,), (4,)],
    [(4, 2)],
]


@pytest.mark.parametrize(
    ("alpha", "joins", "joined"),
    [(0.0, (), ()), (0.6, (), (3,)), (0.6, (4,), ())],
)
def test_wide_beam_equals_exhaustive_search_with_terms(alpha, joins, joined):
    limit, beam = 6, 243  # 3 tokens at 5 positions before EOS: 3^5 hypotheses.
    cases = [
        [
            term
            for term in case
            if not {term[-1]} & {*joins} and not {term[0]} & {*joined}
        ]
        for case in CASES
    ]
    sources = SMALL.sources(len(cases))
    search = DecodingConfig(beam, alpha, extra_length=limit - 1, nbest=2)
    assert search.longest(1) == limit
    terms = terms_of(cases, SMALL.vocab_size, joins, joined)
    result = traced(SMALL, search)(sources, terms)
    for row, (source, case) in enumerate(zip(sources, cases, strict=True)):
        every = SMALL.exhaustive(source, limit, alpha)
        expected = [
            each for each in every if contains_terms(each[1], case, joins, joined)
        ][:2]
        for place, (score, ids) in enumerate(expected):
            assert hypothesis(result.ids[row, place]) == ids
            np.testing.assert_allclose(result.scores[row, place], score, atol=1e-5)


@pytest.mark.parametrize("algorithm", ["t2t", "marian", "transformers", "opennmt"])
def test_narrow_beam_produces_all_terms(algorithm):
    generator = np.random.default_rng(3)
    terms_of_rows = [
        [
            tuple(generator.integers(2, 12, generator.integers(1, 4)).tolist())
            for _ in range(generator.integers(0, 4))
        ]
        for _ in range(64)
    ]
    # At most 9 tokens of terms, and EOS, fit into the limit, except for the first term
    # of the last row.
    terms_of_rows[-1] = [(5,) * 11, (2, 3), (4,)]
    sources = LARGER.sources(64)
    search = DecodingConfig(5, 0.6, extra_length=11, algorithm=algorithm)
    assert search.longest(1) == 12
    terms = terms_of(terms_of_rows, LARGER.vocab_size)
    result = traced(LARGER, search)(sources, terms)
    for row, (source, row_terms) in enumerate(zip(sources, terms_of_rows, strict=True)):
        ids = hypothesis(result.ids[row, 0])
        assert ids[-1] == EOS
        for term in (term for term in row_terms if len(term) < 11):
            places = range(len(ids) - len(term))
            assert any(ids[n : n + len(term)] == term for n in places)
        score = LARGER.score(source, ids, 0.6)
        if algorithm in ("marian", "transformers"):
            score = LARGER.score(source, ids, 0.0) / len(ids) ** 0.6
        np.testing.assert_allclose(result.scores[row, 0], score, atol=1e-4)
