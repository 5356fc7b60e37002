"""What is seen of a sentence: whole up to a length, and refused if it is none."""

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
from tests import tiny

SEARCH = DecodingConfig(2, extra_length=3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def model():
    return tiny.random_model(num_layers=3, num_decoder_layers=2)


def test_weights_are_those_of_every_layer_in_order(model):
    source, target = (5, 9, 7, 1), (8, 6, 1)
    found = pair_attention(model, source, target)
    assert found.encoder.shape == (3, 2, 4, 4)
    assert found.decoder.shape == (2, 2, 3, 3)
    assert found.cross.shape == (2, 2, 3, 4)
    for weights in found:
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    maps = attention_maps(model, tf.constant([source]), tf.constant([target]))
    for layer in range(2):
        name = f"decoder/layer_{layer}/cross_attention"
        np.testing.assert_array_equal(found.cross[layer], maps[name][0])
    # The first layer by hand: it reads the embeddings themselves.
    x = model.encoder_input(tf.constant([source]))
    attention = model.encoder.layer_0.self_attention
    query, (key, _) = attention.project_query(x), attention.project_memory(x)
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))
    np.testing.assert_allclose(found.encoder[0], weights[0], atol=1e-6)


def test_without_a_translation_it_is_the_models_own(model, tokenizer):
    seen = inspect_translation(model, tokenizer, "one two", None, SEARCH)
    assert seen.target == seen.beam.results[0].ids
    assert seen.translation == seen.found
    assert not seen.is_given
    names = [seen.name(symbol) for symbol in seen.source]
    assert "".join(names[:-1]).replace("\u2581", " ").strip() == "one two"
    given = inspect_translation(model, tokenizer, "one two", "drei", SEARCH)
    assert given.is_given
    assert (given.translation, given.found) == ("drei", seen.found)
    assert tokenizer.decode(tf.constant([given.target])).numpy() == [b"drei"]
    assert given.attention.cross.shape[2] == len(given.target)


def test_a_long_sentence_is_cut_and_told(tokenizer):
    # The search, which nothing of this depends on, takes a step for every subword.
    model = tiny.random_model()
    text = " ".join(["one two three"] * 60)
    whole = len(tokenizer.encode(tf.constant([text])).to_list()[0])
    seen = inspect_translation(
        model, tokenizer, text, text, DecodingConfig(1, extra_length=1)
    )
    assert len(seen.source) == len(seen.target) == MOST_SUBWORDS
    assert seen.source[-1] == seen.target[-1] == 1
    ending = f"has {whole:,} subwords; the first {MOST_SUBWORDS} are shown"
    assert seen.cuts == [f"the text {ending}", f"the translation {ending}"]


def test_rows_that_fill_a_table_up_have_a_name(model, tokenizer):
    seen = inspect_translation(model, tokenizer, "one", None, SEARCH)
    assert seen.name(tokenizer.vocab_size) == f"<{tokenizer.vocab_size}>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "--text is blank"),
        (" \t", "--text is blank"),
        ("one\ntwo", "--text holds a line break or a NUL"),
        ("one\0", "--text holds a line break or a NUL"),
        ("one \udcff", "--text is not valid UTF-8"),
    ],
)
def test_what_is_no_sentence_is_refused(text, words):
    with pytest.raises(UserError, match=words):
        check_sentence(text, "--text")
