"""A sentence alone, compiled: the same translations."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.fast import compiled_search
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.models.generate import generate
from t2t_repro.translation.translator import Translator
from tests import tiny

SEARCH = DecodingConfig(beam_size=3, extra_length=3)
CHANGES = [
    {},
    {"nbest": 3},
    {"beam_size": 1},
    {"min_length": 9},
    {"no_repeat_ngram": 2},
    {"alpha": 0.0},
    {"algorithm": "marian", "never": (5,), "length_factor": 1.5, "alpha": 1.0},
    {"algorithm": "transformers", "alpha": 1.0},
    {"algorithm": "opennmt"},
]
LINES = [*(source for source, _ in tiny.pairs("test")[:4]), "", "one two " * 4]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def models():
    return [tiny.random_model(), tiny.random_model(seed=2)]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("changes", "several"),
    [({}, True), *((changes, False) for changes in CHANGES)],
    ids=str,
)
def test_a_compiled_search_finds_the_same(models, tokenizer, changes, several):
    search = replace(SEARCH, **changes)
    chosen = models if several else models[:1]
    plain = Translator(chosen, tokenizer, search)
    for_one = CompiledSearch(chosen, search)
    compiled = Translator(chosen, tokenizer, search, for_one=for_one)
    expected = list(plain.translate_lines(LINES, batch_size=1))
    found = list(compiled.translate_lines(LINES, batch_size=1))
    assert [each.text for each in found] == [each.text for each in expected]
    assert len({each.text for each in found}) > 3
    for ours, theirs in zip(found, expected, strict=True):
        assert abs(ours.score - theirs.score) < 1e-4
        assert [o.text for o in ours.others] == [o.text for o in theirs.others]


def test_only_short_sentences_alone_are_compiled(models, tokenizer, monkeypatch):
    search = CompiledSearch(models[:1], replace(SEARCH, extra_length=50))

    def is_for(sentences, source):
        return search.is_for(tf.ones([sentences, source], tf.int32))

    assert is_for(1, 1) and is_for(1, 192)
    # 193 are padded to 208, and may take 258 steps.
    assert not is_for(1, 193)
    assert not is_for(2, 1)
    # A batch of two, and a prefix, are found without it.
    for_one = CompiledSearch(models[:1], SEARCH)
    translator = Translator(models[:1], tokenizer, SEARCH, for_one=for_one)
    monkeypatch.setattr(
        CompiledSearch, "__call__", lambda *_: pytest.fail("was compiled")
    )
    two = tf.constant([[5, 6, 1], [7, 1, 0]])
    ((ids, _),) = translator.translate_batches([two])
    np.testing.assert_array_equal(ids, translator.translate_ids(two)[0])
    (begun,) = translator.translate_window(["one"], prefixes=["neun"])
    assert begun.text.startswith("neun")


def test_lengths_of_a_class_are_compiled_once(models):
    search = CompiledSearch(models[:1], replace(SEARCH, beam_size=1))
    for length in (3, 4, 16, 17):
        inputs = tf.constant([[5] * (length - 1) + [1]])
        assert search(inputs)[0].shape[0] == 1
    assert sorted(search._compiled) == [16, 32]
    assert compiled_search._padded(16) == 16


@pytest.mark.parametrize(
    "changes", [{"sampling": Sampling()}, {"tensor2tensor_rules": True}], ids=str
)
def test_other_searches_are_not_compiled(models, changes):
    search = replace(SEARCH, **changes)
    with pytest.raises(ValueError, match="only beam search by its own rules"):
        CompiledSearch(models[:1], search)
    with pytest.raises(ValueError, match="width cannot be combined"):
        generate(search, None, tf.constant([[5, 1]]), width=4)
