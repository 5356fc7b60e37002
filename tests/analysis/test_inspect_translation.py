"""Tests of the inspection of a translation."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.analysis.inspect_translation import (
    MOST_SUBWORDS,
    check_sentence,
    inspect_translation,
)
from t2t_repro.analysis.pair_attention import pair_attention
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.system.errors import UserError
from t2t_repro.texts.sentences import SentenceSplitter
from tests import tiny

SEARCH = DecodingConfig(2, extra_length=3)


@pytest.fixture(scope="module")
def model():
    return tiny.random_model(num_layers=3, num_decoder_layers=2)


def test_weights_contain_every_layer_in_order(model):
    source, target = (5, 9, 7, 1), (8, 6, 1)
    pair = pair_attention(model, source, target)
    assert pair.encoder.shape == (3, 2, 4, 4)
    assert pair.decoder.shape == (2, 2, 3, 3)
    assert pair.cross.shape == (2, 2, 3, 4)
    for weights in pair:
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    maps = attention_maps(model, tf.constant([source]), tf.constant([target]))
    for layer in range(2):
        name = f"decoder/layer_{layer}/cross_attention"
        np.testing.assert_array_equal(pair.cross[layer], maps[name][0])
    # The input of the first layer is the embeddings, so its weights can be recomputed.
    x = model.encoder_input(tf.constant([source]))
    attention = model.encoder.layer_0.self_attention
    query, (key, _) = attention.project_query(x), attention.project_memory(x)
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))
    np.testing.assert_allclose(pair.encoder[0], weights[0], atol=1e-6)


def test_translation_defaults_to_the_search_result(model, tokenizer):
    inspection = inspect_translation(model, tokenizer, "one two", None, SEARCH)
    assert inspection.target == inspection.beam.results[0].ids
    assert inspection.translation == inspection.found
    assert not inspection.is_given
    names = [inspection.name(token) for token in inspection.source]
    assert "".join(names[:-1]).replace("\u2581", " ").strip() == "one two"
    other = inspect_translation(model, tokenizer, "one two", "drei", SEARCH)
    assert other.is_given
    assert (other.translation, other.found) == ("drei", inspection.found)
    assert tokenizer.decode(tf.constant([other.target])).numpy() == [b"drei"]
    assert other.attention.cross.shape[2] == len(other.target)


def test_long_sentence_is_cut_with_a_message(tokenizer):
    # A search of one step suffices, because the test does not depend on its result.
    search = DecodingConfig(1, extra_length=1, length_factor=0.0)
    model = tiny.random_model()
    text = "One. " + " ".join(["Two three"] * 60)
    whole = len(tokenizer.encode(tf.constant([text])).to_list()[0])
    inspection = inspect_translation(
        model, tokenizer, text, text, search, SentenceSplitter(tokenizer, 512, "en")
    )
    assert len(inspection.source) == len(inspection.target) == MOST_SUBWORDS
    assert inspection.source[-1] == inspection.target[-1] == 1
    beginning = f"has {whole:,} tokens; only the first {MOST_SUBWORDS} are"
    assert inspection.cuts == [
        "the model reads the text as one sentence and may translate only a part of it",
        f"the text {beginning} translated and shown",
        f"the translation {beginning} shown",
    ]


def test_unknown_tokens_are_counted(model, tokenizer, monkeypatch):
    token = int(tokenizer.encode(tf.constant(["one"]))[0, 0])
    monkeypatch.setattr(tokenizer, "unknown_id", token)
    texts = ("one two one", "eins one")
    inspection = inspect_translation(model, tokenizer, *texts, SEARCH)
    assert inspection.cuts == [
        "tokens of the text that the vocabulary cannot spell: 2",
        "tokens of the translation that the vocabulary cannot spell: 1",
    ]


def test_unused_rows_have_a_placeholder_name(model, tokenizer):
    inspection = inspect_translation(model, tokenizer, "one", None, SEARCH)
    assert inspection.name(tokenizer.vocab_size) == f"<{tokenizer.vocab_size}>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "--text is blank"),
        (" \t", "--text is blank"),
        ("one\ntwo", "--text contains a line break or NUL"),
        ("one\0", "--text contains a line break or NUL"),
        ("one \udcff", "--text is not valid UTF-8"),
    ],
)
def test_rejects_invalid_sentences(text, words):
    with pytest.raises(UserError, match=words):
        check_sentence(text, "--text")
