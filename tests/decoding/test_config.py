"""The decoding settings, and their use in `generate`."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.decoding.sampling import sentence_keys
from t2t_repro.models import generate as generate_module
from t2t_repro.models.generate import generate

INPUTS = tf.constant([[5, 6, 7, 1], [5, 1, 0, 0]])


def test_rejects_nbest_outside_of_the_beam():
    with pytest.raises(ValueError, match="nbest is 4, must be 1 to 3"):
        DecodingConfig(beam_size=3, nbest=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0"),
        ({"beam_size": 2.5}, "beam_size is 2.5, must be a whole number from 1"),
        ({"nbest": 1.5}, "nbest is 1.5"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"length_factor": "2"}, "length_factor is '2'"),
        ({"extra_length": -5}, "extra_length is -5"),
        ({"extra_length": 10**9}, "extra_length is 1000000000, .* 0 to 100,000"),
        ({"word_penalty": float("inf")}, "word_penalty is inf, .* a finite number$"),
        ({"min_length": -1}, "min_length is -1"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1"),
        ({"sampling": True}, "sampling is True, must be a Sampling"),
        ({"sampling": Sampling(), "nbest": 0}, "nbest is 0"),
    ],
)
def test_rejects_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0.*beam_size 1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": "1"}, "temperature is '1', must be a number"),
        ({"top_p": None}, "top_p is None, must be a number"),
        ({"seed": 1.5}, "seed is 1.5, must be a whole number"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_k": 1.5}, "top_k is 1.5"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_rejects_sampling_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)


def test_number_of_samples_is_nbest():
    search = DecodingConfig(beam_size=3, nbest=7, sampling=Sampling())
    assert (search.hypotheses, search.scoring.alpha) == (7, 0.0)
    assert DecodingConfig(beam_size=3, alpha=0.5).hypotheses == 3
    assert DecodingConfig(alpha=0.5).scoring.alpha == 0.5


@pytest.mark.parametrize("sampling", [None, Sampling()])
def test_limit_is_input_length_plus_extra_length(sampling, monkeypatch):
    searches = []

    def record(search, *_):
        searches.append(search)

    class StubDecoder:
        def start(self, inputs):
            return ()

    monkeypatch.setattr(generate_module, "decode_batch", record)
    generate(DecodingConfig(extra_length=2, sampling=sampling), StubDecoder(), INPUTS)
    config = DecodingConfig(min_length=3, no_repeat_ngram=2, sampling=sampling)
    generate(config, StubDecoder(), INPUTS, prefixes=INPUTS)
    first, second = searches
    assert first.limits.numpy().tolist() == [6, 4]
    assert first.method.constraints is None or first.method.constraints.only_tokens
    constraints = second.method.constraints
    assert int(constraints.min_lengths) == 3
    assert constraints.no_repeat_ngram == 2
    assert constraints.prefixes is INPUTS


@pytest.mark.parametrize(
    ("factor", "limits"), [(0.0, [2, 2]), (1.0, [9, 4]), (1.5, [13, 5]), (2.0, [16, 6])]
)
def test_limit_is_a_multiple_of_the_input_length_rounded_up(factor, limits):
    config = DecodingConfig(extra_length=2, length_factor=factor)
    assert [config.longest(7), config.longest(2)] == limits
    assert config.longest(tf.constant([7, 2])).numpy().tolist() == limits


def test_keys_depend_on_the_sentence_but_not_on_padding():
    generator = np.random.default_rng(1)
    rows = generator.integers(1, 100, (1000, 6), np.int32)
    rows[::2, 4:] = 0
    keys = sentence_keys(tf.constant(rows)).numpy()
    assert keys.min() >= 0
    # The probability of a collision among 1,000 random 31-bit keys is about 1 / 4,000.
    assert len(set(keys)) == len({tuple(row) for row in rows.tolist()}) == 1000
    padded = np.pad(rows, ((0, 0), (0, 5)))
    assert sentence_keys(tf.constant(padded)).numpy().tolist() == keys.tolist()
