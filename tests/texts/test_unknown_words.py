"""Tests of unknown tokens: allowed, forbidden, or replaced by source words."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.texts.unknown_words import _replace_unknown
from t2t_repro.tokenizers.tokenizer import EOS_ID
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import Loaded
from t2t_repro.translation.options import TranslationOptions
from tests import tiny

LINES = ["one, two three!", "four"]
UNKNOWN_TEXT = "\N{DOUBLE QUESTION MARK}"


@pytest.fixture(scope="module")
def loaded(tokenizer):
    """A model that only produces unknown tokens, up to the length limit."""
    model = tiny.random_model(softmax_bias=True)
    (bias,) = (v for v in model.trainable_variables if v.shape == (tiny.VOCAB_SIZE,))
    values = np.zeros(tiny.VOCAB_SIZE, np.float32)
    values[tokenizer.unknown_id] = 1e4
    bias.assign(values)
    return Loaded([model], tokenizer, HParams(decode_extra_length=1), [], [])


@pytest.mark.medium
@pytest.mark.parametrize("algorithm", ["t2t", "marian", "transformers", "opennmt"])
def test_every_search_can_forbid_unknown_tokens(loaded, algorithm):
    unknown = loaded.tokenizer.unknown_id
    default, allow = (
        loaded.search(algorithm=algorithm, unknown=setting)
        for setting in (None, "allow")
    )
    assert default == allow
    options = TranslationOptions(unknown="forbid", algorithm=algorithm, beam_size=2)
    translator = build_translator(loaded, options)
    ids = translator.translate_ids(translator.encode(tf.constant(LINES)))[0]
    assert unknown not in ids.numpy()[:, 0]


@pytest.mark.medium
def test_the_compiled_search_can_forbid_unknown_tokens(loaded):
    options = TranslationOptions(unknown="forbid", beam_size=2)
    translator = build_translator(loaded, options, compile_after=0)
    (translation,) = translator.translate_window(["four"])
    assert translation.best.tokens and UNKNOWN_TEXT not in translation.text


@pytest.mark.medium
def test_unknown_tokens_are_replaced_by_aligned_source_words(loaded):
    options = TranslationOptions(beam_size=2, nbest=2)
    translator = build_translator(loaded, replace(options, unknown="replace"))
    plain = build_translator(loaded, options).translate_window(LINES)
    longer, shorter = translator.translate_window(LINES)
    assert UNKNOWN_TEXT in plain[0].text
    assert shorter.text == "four"
    assert [each.score for each in (longer, shorter)] == [each.score for each in plain]
    # The alignment of the two lines of tokens, by hand: the largest attention weight.
    tokenizer, (model,) = loaded.tokenizer, loaded.models
    inputs = tokenizer.encode([LINES[0]]).to_tensor()
    targets = [[*[tokenizer.unknown_id] * longer.best.tokens, EOS_ID]]
    maps = attention_maps(model, inputs, tf.constant(targets))
    weights = maps["decoder/layer_0/cross_attention"].numpy()[0].mean(axis=0)
    starts = {"one": 0, ",": 3, "two": 5, "three": 9, "!": 14}
    texts = [tokenizer.decode(inputs[:, :n]).numpy()[0].decode() for n in range(1, 50)]
    lengths = [len(text) for text in texts[: inputs.shape[1] - 1]]
    words = []
    for best in weights[: longer.best.tokens, : len(lengths)].argmax(axis=1):
        # The word that contains the last character of the token.
        word = [word for word, start in starts.items() if start < lengths[best]][-1]
        words += [word] if words[-1:] != [word] else []
    for mark in ",!":
        words = " ".join(words).replace(f" {mark}", f" {mark}").split()
    assert longer.text.split() == words
    assert all(UNKNOWN_TEXT not in each.text for each in longer.hypotheses[1:])


def test_vocabularies_without_unknown_tokens_ignore_the_setting(loaded, monkeypatch):
    monkeypatch.setattr(loaded.tokenizer, "unknown_id", None)
    assert loaded.search(unknown="forbid") == loaded.search(unknown="allow")
    assert loaded.search(unknown="forbid").never == ()


@pytest.mark.parametrize(
    ("pieces", "words", "expected"),
    [
        # None is an unknown token.
        (["Herr", None, " geht", "."], ["Mr", "Li", "goes", "."], "Herr Li geht."),
        ([None, ",", " sagt"], ["Li", ",", "says"], "Li, sagt"),
        (["a ", None, "  ", None, None, "."], list("aLMLMM"), "a L L M."),
        (["a ", None, None, " b"], list("aLLb"), "a L b"),
        (["(", None, ")"], list("(L)"), "(L)"),
        ([None], ["Li"], "Li"),
    ],
)
def test_words_have_spaces_around_them(pieces, words, expected):
    known = [piece is not None for piece in pieces]
    texts = [piece or f" {UNKNOWN_TEXT} " for piece in pieces]
    assert _replace_unknown(known, texts, words) == expected
