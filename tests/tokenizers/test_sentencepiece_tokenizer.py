"""SentencePiece tokenizer, compared with the sentencepiece library."""

import io

import keras
import pytest
import sentencepiece
import tensorflow as tf

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    model_proto,
    read_model,
)

LINES = ["the dog sees a cat", "a cat sees the dog", "</s> the dog <pad>"] * 5


def train_model(**settings) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        model_type="bpe",
        hard_vocab_limit=False,
        vocab_size=400,  # A soft limit; these lines yield fewer pieces.
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


def test_ids_and_texts_match_the_sentencepiece_library(shared_dir):
    path = shared_dir / "t2t/multi30k_reference/spm6k.model"
    lines = read_lines(shared_dir / "corpora/multi30k/val.de")
    lines += read_lines(shared_dir / "corpora/multi30k/val.en")
    lines += ["</s> <pad> <unk>", "  two  spaces ", "\uff46\uff55ll", "日本語 😀", ""]
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokenizer = load_tokenizer(path)

    ids = tokenizer.encode(tf.constant(lines))
    texts = [text.decode() for text in tokenizer.decode(ids).numpy()]

    pieces = library.encode(lines)
    assert ids.to_list() == [[*row, 1] for row in pieces]
    assert texts == [library.decode(row) for row in pieces]
    assert tokenizer.vocab_size == 6000


def test_operations_equal_those_of_the_whole_tensorflow_text():
    model = train_model(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = SentencePieceTokenizer(model, "any.model")
    import tensorflow_text  # loads the library of the operations again

    theirs = tensorflow_text.SentencepieceTokenizer(model)
    ids = theirs.tokenize(LINES)
    assert tokenizer.encode(LINES)[:, :-1].to_list() == ids.to_list()
    assert (
        tokenizer.decode(ids).numpy().tolist()
        == theirs.detokenize(ids).numpy().tolist()
    )


@pytest.mark.parametrize("dummy_prefix", [True, False])
def test_byte_fallback_model_restores_leading_spaces(dummy_prefix):
    model = train_model(
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        byte_fallback=True,
        remove_extra_whitespaces=False,
        add_dummy_prefix=dummy_prefix,
    )
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = SentencePieceTokenizer(model, "foreign.model")
    texts = ["the dog", "A cat", " A", "é A", "dog  "]
    ids = tokenizer.encode(tf.constant(texts))
    assert ids.to_list() == [[*row, 1] for row in library.encode(texts)]
    assert [text.decode() for text in tokenizer.decode(ids).numpy()] == texts


def test_rejects_a_model_with_other_special_ids():
    with pytest.raises(UserError, match="has pad id -1 and eos id 2; train it with"):
        SentencePieceTokenizer(train_model(), "foreign.model")


def test_rejects_a_model_with_user_defined_eos():
    model = train_model(
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, user_defined_symbols="</s>"
    )
    with pytest.raises(UserError, match="has pad id 0 and eos id -1"):
        SentencePieceTokenizer(model, "foreign.model")


@pytest.mark.parametrize("contents", [b"hello", b"\x00" * 50, b"\n\x00"])
def test_rejects_a_file_that_is_not_a_model(contents):
    with pytest.raises(UserError, match=r"foreign\.model: not a SentencePiece model"):
        SentencePieceTokenizer(contents, "foreign.model")


def test_setting_a_random_seed_keeps_tokenizer_and_export_usable(tmp_path):
    tokenizer = SentencePieceTokenizer(
        train_model(pad_id=0, eos_id=1, unk_id=2, bos_id=-1), "any.model"
    )
    tf.saved_model.save(
        tokenizer, tmp_path, signatures={"ids": encode_function(tokenizer)}
    )
    loaded = tf.saved_model.load(tmp_path).signatures["ids"]
    text = tf.constant(["the dog", "a cat"])
    before = tokenizer.encode(text)
    keras.utils.set_random_seed(1)
    tf.debugging.assert_equal(tokenizer.encode(text).values, before.values)
    tf.debugging.assert_equal(loaded(text)["ids"], before.to_tensor())
    assert tokenizer.decode(before).numpy().tolist() == text.numpy().tolist()


def encode_function(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def ids(text):
        return {"ids": tokenizer.encode(text).to_tensor()}

    return ids


def test_rejects_a_model_without_an_unknown_piece():
    """SentencePiece's Python library opens it, but TensorFlow's kernel does not."""
    proto = model_proto(train_model())
    read_model(proto.SerializeToString(), "")
    for piece in proto.pieces:
        if piece.type == piece.UNKNOWN:
            piece.type = piece.NORMAL
    with pytest.raises(UserError, match="is damaged"):
        read_model(proto.SerializeToString(), "the model is damaged")
