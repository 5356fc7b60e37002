"""The settings of decoding, and the call that applies them."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.decoding.sampling import sentence_keys
from t2t_repro.models import generate as generate_module
from t2t_repro.models.generate import generate

INPUTS = tf.constant([[5, 6, 7, 1], [5, 1, 0, 0]])


@pytest.mark.parametrize("nbest", [0, 4])
def test_a_list_holds_at_most_what_the_beam_does(nbest):
    with pytest.raises(ValueError, match=f"nbest is {nbest}, must be 1 to 3"):
        DecodingConfig(beam_size=3, nbest=nbest)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"sampling": Sampling(), "nbest": 0}, "nbest is 0"),
    ],
)
def test_a_setting_out_of_range_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0.*beam_size 1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_a_setting_of_sampling_out_of_range_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)


def test_samples_are_as_many_as_one_likes():
    search = DecodingConfig(beam_size=3, nbest=7, sampling=Sampling())
    assert (search.hypotheses, search.scoring.alpha) == (7, 0.0)
    assert DecodingConfig(beam_size=3, alpha=0.5).hypotheses == 3
    assert DecodingConfig(alpha=0.5).scoring.alpha == 0.5


def test_tensor2tensor_draws_nothing():
    with pytest.raises(ValueError, match="requires beam search"):
        DecodingConfig(sampling=Sampling(), tensor2tensor_rules=True)


@pytest.mark.parametrize("sampling", [None, Sampling()])
def test_an_output_ends_at_its_own_input_length_and_the_extra(sampling, monkeypatch):
    searches = []

    def recorded(search, *_):
        searches.append(search)

    class Starting:
        def start(self, inputs):
            return ()

    monkeypatch.setattr(generate_module, "decode_batch", recorded)
    generate(DecodingConfig(extra_length=2, sampling=sampling), Starting(), INPUTS)
    config = DecodingConfig(min_length=3, no_repeat_ngram=2, sampling=sampling)
    generate(config, Starting(), INPUTS, prefixes=INPUTS)
    first, second = searches
    assert first.limits.numpy().tolist() == [6, 4]
    assert first.method.constraints is None or first.method.constraints.only_tokens
    constraints = second.method.constraints
    assert int(constraints.min_lengths) == 3
    assert constraints.no_repeat_ngram == 2
    assert constraints.prefixes is INPUTS


def test_keys_tell_sentences_apart_whatever_their_padding():
    generator = np.random.default_rng(1)
    rows = generator.integers(1, 100, (1000, 6), np.int32)
    rows[::2, 4:] = 0
    keys = sentence_keys(tf.constant(rows)).numpy()
    assert keys.min() >= 0
    # Of 1,000 keys of 31 bits two are equal once in 4,000 times.
    assert len(set(keys)) == len({tuple(row) for row in rows.tolist()}) == 1000
    padded = np.pad(rows, ((0, 0), (0, 5)))
    assert sentence_keys(tf.constant(padded)).numpy().tolist() == keys.tolist()
