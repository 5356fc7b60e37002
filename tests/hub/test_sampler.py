"""The samplers find what the package's searches and their plain forms find."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hub.conversion import sampler_for
from tests.decoding import plain_search
from tests.decoding.results import beam_search
from tests.decoding.toy_decoders import EOS, LARGER

LIMITS = [9, 4, 6, 9, 1, 2, 7, 12, 0, 5, 8, 10]
WIDTH = 1 + max(LIMITS)


def next_logits(tokens, cache, index):
    """Implements `MemoryDecoder` with a cache, as keras-hub's samplers call it."""
    source, memory = cache
    memory = 0.7 * memory + keras.ops.take(LARGER.embedding, tokens[:, index - 1], 0)
    logits = keras.ops.tanh(memory + source) @ LARGER.output + LARGER.bias
    return logits, None, (source, memory)


def sample(search, sources, prefixes=None):
    prompt = np.zeros((len(sources), WIDTH), "int32")
    if prefixes is not None:
        prompt[:, 1 : 1 + prefixes.shape[1]] = prefixes
    cache = keras.ops.convert_to_tensor(sources), keras.ops.zeros(sources.shape)
    tokens = sampler_for(search)(
        next_logits,
        keras.ops.convert_to_tensor(prompt),
        cache=cache,
        mask=(prompt > 0) | (np.arange(WIDTH) == 0),
        stop_token_ids=(EOS,),
        limits=keras.ops.convert_to_tensor(LIMITS, "int32"),
    )
    assert tokens.shape == prompt.shape
    rows = keras.ops.convert_to_numpy(tokens)
    assert not rows[:, 0].any()
    return [tuple(each for each in row[1:].tolist() if each) for row in rows]


@pytest.mark.parametrize("algorithm", ["marian", "transformers", "opennmt"])
@pytest.mark.parametrize(
    ("beam_size", "alpha", "never"), [(1, 1.0, ()), (4, 0.6, (3,))]
)
def test_other_searches_equal_their_plain_forms(algorithm, beam_size, alpha, never):
    search = DecodingConfig(beam_size, alpha, algorithm=algorithm, never=never)
    plain = getattr(plain_search, algorithm)
    sources = LARGER.sources(len(LIMITS))
    found = sample(search, sources)
    assert len(set(found)) > 5
    for source, limit, ids in zip(sources, LIMITS, found, strict=True):

        def log_probs(prefix, source=source):
            return LARGER.log_probs(source, prefix)

        expected = plain(log_probs, limit, beam_size, alpha, never=never)
        assert ids == (expected[0].ids if limit else ())


def test_marian_subtracts_a_word_penalty():
    search = DecodingConfig(4, 0.6, algorithm="marian", word_penalty=-0.4)
    sources = LARGER.sources(len(LIMITS))
    for source, limit, ids in zip(
        sources, LIMITS, sample(search, sources), strict=True
    ):

        def log_probs(prefix, source=source):
            return LARGER.log_probs(source, prefix)

        expected = plain_search.marian(log_probs, limit, 4, 0.6, -0.4)
        assert ids == (expected[0].ids if limit else ())


@pytest.mark.parametrize(
    ("beam_size", "alpha", "with_prefixes"),
    [(1, 0.6, False), (4, 0.6, False), (4, 0.6, True), (8, 0.0, True)],
)
def test_the_papers_search_equals_that_of_translate(beam_size, alpha, with_prefixes):
    search = DecodingConfig(beam_size, alpha, never=(3,))
    sources, prefixes = LARGER.sources(len(LIMITS)), None
    if with_prefixes:
        prefixes = np.zeros((len(LIMITS), 4), "int32")
        for row, length in enumerate([0, 1, 2, 4, 1, 2, 3, 0, 0, 2, 4, 1]):
            prefixes[row, :length] = np.arange(2, 2 + length)
    state = LARGER.start(sources, beam_size)
    constraints = search.constraints(prefixes)
    result = beam_search(
        LARGER, state, search, tf.constant(LIMITS), constraints=constraints
    )
    expected = [tuple(each for each in row if each) for row in result.ids[:, 0].numpy()]
    assert sample(search, sources, prefixes) == expected


def test_a_result_is_independent_of_the_other_sentences(monkeypatch):
    search, sources = DecodingConfig(4, 0.6), LARGER.sources(len(LIMITS))
    expected = sample(search, sources)
    monkeypatch.setattr("tests.hub.test_sampler.LIMITS", LIMITS[::-1])
    assert sample(search, sources[::-1])[::-1] == expected
