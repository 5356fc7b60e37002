"""Tests of the scores of given translations."""

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.system.errors import UserError
from t2t_repro.translation import pair_scores
from t2t_repro.translation.pair_scores import CorpusScore, PairScore, PairScorer
from t2t_repro.translation.translator import Translator
from tests import tiny

PAIRS = [*tiny.pairs("test"), ("", "eins"), ("one €", ""), ("ten " * 9, "zehn  日 x ")]


@pytest.fixture(scope="module")
def model():
    return tiny.random_model()


@pytest.fixture(scope="module")
def scorer(model, tokenizer):
    return PairScorer(model, tokenizer)


@pytest.fixture(scope="module")
def expected(model, tokenizer):
    """Returns the log probabilities of each pair's tokens, from NumPy in float64."""
    scores = []
    for pair in PAIRS:
        inputs, targets = (
            tokenizer.encode(tf.constant([text])).to_tensor() for text in pair
        )
        logits = np.asarray(model({"inputs": inputs, "targets": targets}), np.float64)[
            0
        ]
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        scores.append(np.take_along_axis(log_probs, targets.numpy().T, axis=1)[:, 0])
    return scores


@pytest.mark.parametrize("settings", [{}, {"window": 4, "tokens_per_batch": 30}])
def test_scores_equal_the_log_probabilities_of_the_model(scorer, expected, settings):
    counts = []
    scores = list(scorer.score_pairs(PAIRS, progress=counts.append, **settings))
    assert [score.symbols for score in scores] == [len(each) for each in expected]
    sums = [each.sum() for each in expected]
    np.testing.assert_allclose([score.log_prob for score in scores], sums, atol=1e-4)
    assert {score.tokens for score in scores} == {()}
    assert sum(counts) == len(PAIRS)


def test_tokens_spell_the_target_and_their_scores_add_up(scorer, expected):
    scores = scorer.score_pairs(PAIRS, per_token=True)
    for (_, target), score, values in zip(PAIRS, scores, expected, strict=True):
        texts, log_probs = zip(*score.tokens, strict=True)
        assert "".join(texts) == target + "<EOS>"
        np.testing.assert_allclose(log_probs, values, atol=1e-5)
        assert score.log_prob == pytest.approx(sum(log_probs), abs=1e-5)


def test_scores_equal_those_of_beam_search(model, tokenizer, scorer):
    search = DecodingConfig(beam_size=3, alpha=0.6, extra_length=3)
    translator = Translator(model, tokenizer, search)
    inputs = translator.encode(tf.constant([source for source, _ in PAIRS]))
    ids, scores = translator.translate_ids(inputs)
    best = ids[:, 0].numpy()
    lengths = (best != 0).sum(axis=1)
    assert len(set(lengths)) > 3
    # Wu et al. 2016, equation 14.
    penalty = ((5 + lengths) / 6) ** 0.6
    sums = scorer.log_probs(inputs, best).numpy().sum(axis=1)
    np.testing.assert_allclose(sums, scores[:, 0] * penalty, atol=1e-4)


def test_yields_a_window_before_reading_the_next(scorer):
    read = []

    def pairs():
        for pair in PAIRS[:4]:
            read.append(pair)
            yield pair

    next(scorer.score_pairs(pairs(), window=2))
    assert len(read) == 2
    assert list(scorer.score_pairs([])) == []


def test_cuts_long_sources_like_a_translator(model, tokenizer, scorer):
    short = PairScorer(model, tokenizer, max_input_length=4)
    translator = Translator(model, tokenizer, max_input_length=4)
    pairs = [("one two three four five", "eins zwei"), ("t", "eins")]
    scores = list(short.score_pairs(pairs))
    assert [score.cut for score in scores] == [True, False]
    inputs = translator.encode(tf.constant([source for source, _ in pairs]))
    targets = tokenizer.encode(tf.constant([target for _, target in pairs]))
    sums = scorer.log_probs(inputs, targets.to_tensor()).numpy().sum(axis=1)
    np.testing.assert_allclose([score.log_prob for score in scores], sums, atol=1e-5)


def test_rejects_targets_that_are_too_long(scorer, monkeypatch):
    pairs = [("one", "eins"), ("one", "eins " * 9)]
    short, long = (score.symbols for score in scorer.score_pairs(pairs))
    monkeypatch.setattr(pair_scores, "MAX_TARGET_LENGTH", short)
    words = f"line 2 of the targets has {long} subwords, the maximum is {short}"
    with pytest.raises(UserError, match=words):
        list(scorer.score_pairs(pairs))
    with pytest.raises(UserError, match=words):
        list(scorer.score_pairs(pairs, window=1))


def test_perplexity_is_per_token_over_the_corpus():
    corpus = CorpusScore()
    assert corpus.perplexity == 1
    # Three tokens of probability 1/2 and one of 1/16: 2 ** (7 / 4) by hand.
    corpus.add(PairScore(3 * math.log(1 / 2), 3, (), cut=False))
    corpus.add(PairScore(math.log(1 / 16), 1, (), cut=True))
    assert (corpus.pairs, corpus.tokens, corpus.cut) == (2, 4, 1)
    assert corpus.perplexity == pytest.approx(3.3635857)
    assert corpus.text() == "2 pairs, 4 tokens, perplexity 3.3636 per token"
    assert PairScore(math.log(1 / 4), 2, (), cut=False).normalized == pytest.approx(
        math.log(1 / 2)
    )
