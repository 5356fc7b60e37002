"""Tests of the recorded beam search against the translator and the model."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.analysis.beam_trace import trace_beam
from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.models.cached_decoder import CachedDecoder
from t2t_repro.translation.translator import Translator
from tests import tiny

TEXTS = ["one two three", "seven"]


@pytest.fixture(scope="module")
def model(tokenizer):
    """Model whose translations end after several tokens."""
    model = tiny.random_model(share_embeddings=False)
    source = encoded(tokenizer, "one two")
    endless = trace_beam(
        CachedDecoder(model, 1), source, DecodingConfig(1, extra_length=4)
    )
    frequent = endless.results[0].ids[3]
    table = model.softmax.table.numpy()
    table[1] = 0.98 * table[frequent]
    model.softmax.table.assign(table)
    return model


def encoded(tokenizer, text):
    return tuple(tokenizer.encode(tf.constant([text])).to_list()[0])


def log_prob(model, source, ids):
    """Returns the log probability of a token sequence, without a cache."""
    logits = model({"inputs": tf.constant([source]), "targets": tf.constant([ids])})
    each = tf.nn.log_softmax(logits)[0].numpy()
    return sum(each[position, token] for position, token in enumerate(ids))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("beam_size", "alpha", "extra_length", "algorithm"),
    [
        (1, 0.6, 5, "t2t"),
        (3, 2.0, 1, "t2t"),
        *((4, 0.6, 5, name) for name in ("marian", "transformers", "opennmt")),
    ],
)
def test_results_equal_those_of_the_translator(
    model, tokenizer, beam_size, alpha, extra_length, algorithm
):
    search = DecodingConfig(beam_size, alpha, extra_length, algorithm=algorithm)
    translator = Translator(model, tokenizer, search)
    decoder = CachedDecoder(model, beam_size)
    for text in TEXTS:
        inputs = translator.encode(tf.constant([text]))
        ids, scores = translator.translate_ids(inputs)
        trace = trace_beam(decoder, tuple(inputs[0].numpy().tolist()), search)
        best = trace.results[0]
        assert list(best.ids) == [int(token) for token in ids[0, 0] if token]
        traced = [each.score for each in trace.results]
        expected = [score for score in scores[0].numpy() if score > -1e6]
        np.testing.assert_allclose(traced, expected, rtol=1e-5)
        (line,) = translator.translate_lines([text])
        assert line.score == pytest.approx(best.score, rel=1e-5)
        assert line.best.tokens == len(best.ids)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_scores_equal_those_of_the_model_without_a_cache(model, tokenizer, alpha):
    search = DecodingConfig(3, alpha, extra_length=4)
    source = encoded(tokenizer, "one two")
    trace = trace_beam(CachedDecoder(model, 3), source, search)
    assert any(step.ended for step in trace.steps)
    for step in trace.steps:
        for each in (*step.alive, *step.ended):
            expected = log_prob(model, source, each.ids)
            assert each.log_prob == pytest.approx(expected, abs=1e-4)
            penalty = ((5 + len(each.ids)) / 6) ** alpha
            assert each.score == pytest.approx(expected / penalty, abs=1e-4)


def test_hypotheses_continue_those_of_the_previous_step(model, tokenizer):
    source = encoded(tokenizer, "four five")
    trace = trace_beam(CachedDecoder(model, 4), source, DecodingConfig(4, 0.6, 6))
    before = {()}
    ended = set()
    for number, step in enumerate(trace.steps, 1):
        alive = [each.ids for each in step.alive]
        assert len(alive) == len(set(alive)) == 4
        assert all(len(ids) == number and ids[:-1] in before for ids in alive)
        assert all(1 not in ids for ids in alive)
        probabilities = [each.log_prob for each in step.alive]
        assert probabilities == sorted(probabilities, reverse=True)
        for each in step.ended:
            assert each.ids[-1] == 1
            assert each.ids[:-1] in before
            assert each.ids not in ended
            ended.add(each.ids)
        before = set(alive)
    scores = [each.score for each in trace.results]
    assert scores == sorted(scores, reverse=True)
    last = {each.ids for each in trace.steps[-1].alive}
    assert {each.ids for each in trace.results} <= ended | last


def test_unfinished_hypotheses_are_returned_at_the_length_limit(model, tokenizer):
    endless = tiny.random_model()
    table = endless.embedding.table.numpy()
    # A zero embedding gives EOS the logit 0, far below the highest of the 300 logits.
    table[1] = 0
    endless.embedding.table.assign(table)
    source = encoded(tokenizer, "one")
    trace = trace_beam(CachedDecoder(endless, 2), source, DecodingConfig(2, 0.6, 2))
    assert not any(step.ended for step in trace.steps)
    assert len(trace.steps) == len(source) + 2
    assert [each.ids for each in trace.results] == [
        each.ids for each in trace.steps[-1].alive
    ]
    for result, alive in zip(trace.results, trace.steps[-1].alive, strict=True):
        assert result.score == pytest.approx(alive.score, abs=1e-5)


def test_rejects_other_searches(model):
    for search in (
        DecodingConfig(2, min_length=3),
        DecodingConfig(2, sampling=Sampling()),
    ):
        with pytest.raises(ValueError, match="without constraints"):
            trace_beam(CachedDecoder(model, 2), (5, 1), search)
