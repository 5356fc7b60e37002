"""Property tests: both kinds of tokenizer restore every text."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import SUFFIXES, build_vocabulary
from tests import properties, tiny

SIZES = {"sentencepiece": 300, "wordpiece": 90}
# Words of the vocabulary; strings that resemble special pieces; arbitrary text.
KNOWN = st.sampled_from([word for pair in tiny.NUMBERS for word in pair])
SPECIAL = st.sampled_from(["</s>", "<pad>", "<EOS>_", "\u2581", "\ue000", "_", "\\92;"])
TEXTS = st.lists(KNOWN | SPECIAL | st.text() | st.just(" ")).map("".join)


@pytest.fixture(scope="module", params=sorted(SUFFIXES))
def tokenizer(request, tmp_path_factory):
    kind = request.param
    path = tmp_path_factory.mktemp(kind) / f"vocabulary{SUFFIXES[kind]}"
    lines = [side for pair in tiny.pairs("train") for side in pair]
    build_vocabulary(kind, lines, SIZES[kind], path)
    return load_tokenizer(path)


@properties.checked
@given(texts=st.lists(TEXTS, max_size=8))
def test_decoding_restores_every_text_of_a_batch(tokenizer, texts):
    ids = tokenizer.encode(tf.constant(texts, tf.string))
    for row in ids.to_list():
        assert row[-1] == 1
        assert all(2 <= number < tokenizer.vocab_size for number in row[:-1])
    for rows in (ids, ids.to_tensor()):
        decoded = [text.decode("utf-8") for text in tokenizer.decode(rows).numpy()]
        assert decoded == texts


@properties.checked
@given(ids=st.lists(st.lists(st.integers(-2, 400), max_size=20), max_size=4))
def test_any_ids_decode_to_text(tokenizer, ids):
    rows = tf.ragged.constant(ids, tf.int32, ragged_rank=1, row_splits_dtype=tf.int64)
    texts = tokenizer.decode(rows).numpy()
    assert len(texts) == len(ids)
    for text in texts:
        text.decode("utf-8")


@properties.checked
@given(raw=st.binary(max_size=40))
def test_any_bytes_can_be_encoded(tokenizer, raw):
    (row,) = tokenizer.encode(tf.constant([raw])).to_list()
    assert row[-1] == 1
    (text,) = tokenizer.decode(tf.constant([row])).numpy()
    assert text.decode("utf-8") == raw.decode("utf-8", errors="replace") or (
        # Libraries insert different numbers of U+FFFD for an invalid character.
        "\ufffd" in text.decode("utf-8")
    )
