"""Beam search equals exhaustive search for random sources."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests import properties
from tests.decoding.results import all_hypotheses, hypothesis
from tests.decoding.test_beam_search import traced
from tests.decoding.toy_decoders import EOS, LARGER, PAD, SMALL

NUMBERS = st.floats(-3, 3, width=32, allow_subnormal=False)
SOURCES = st.integers(1, 4).flatmap(
    lambda rows: arrays("float32", [rows, 6], elements=NUMBERS)
)


# 3 tokens other than PAD and EOS form at most 3^3 unfinished hypotheses.
WIDE = traced(SMALL, beam_size=27, nbest=3)
NARROW = traced(LARGER, beam_size=3, nbest=3)


@properties.checked
@given(sources=SOURCES, limit=st.integers(1, 4))
def test_wide_beam_finds_the_best_hypotheses(sources, limit):
    result = WIDE(sources, [limit] * len(sources))
    for row, source in enumerate(sources):
        best = SMALL.exhaustive(source, limit, 0.6)[:3]
        scores = [score for score, _ in best]
        np.testing.assert_allclose(result.scores[row, : len(best)], scores, atol=1e-5)
        if len(scores) == 1 or scores[0] - scores[1] > 1e-4:
            assert hypothesis(result.ids[row, 0]) == best[0][1]


@properties.checked
@given(sources=SOURCES, data=st.data())
def test_results_are_well_formed_and_have_correct_scores(sources, data):
    rows = len(sources)
    numbers = st.lists(st.integers(1, 9), min_size=rows, max_size=rows)
    limits = data.draw(numbers, label="limits")
    result = NARROW(sources, limits)
    assert np.all(np.diff(result.scores) <= 0)
    for row, ids, score in all_hypotheses(result):
        assert 1 <= len(ids) <= limits[row]
        assert PAD not in ids
        assert EOS not in ids[:-1]
        expected = LARGER.score(sources[row], ids, 0.6)
        np.testing.assert_allclose(score, expected, atol=1e-4)
