"""Tokenizer of word pieces, compared with tensor2tensor."""

import json

import pytest
import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, format_file

SMALL = ["<pad>_", "<EOS>_", *sorted(ESCAPE_CHARACTERS), "a", "b", "ab", "ab_", " "]


@pytest.fixture(scope="module")
def small():
    return WordPieceTokenizer(format_file(SMALL), "small.subwords")


def encode_as_pieces(tokenizer, text: str) -> list[str]:
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    return [SMALL[number] for number in ids[:-1]]


def decode_pieces(tokenizer, pieces: list[str]) -> str:
    ids = tf.constant([[SMALL.index(piece) for piece in pieces]])
    return tokenizer.decode(ids).numpy()[0].decode()


def test_ids_and_texts_match_tensor2tensor(shared_dir):
    golden = json.loads((shared_dir / "t2t/golden/subword_ende8k.json").read_text())
    cases = golden["cases"]
    tokenizer = load_tokenizer(
        shared_dir / "t2t/vocab.translate_ende_wmt8k.8192.subwords"
    )
    ids = tokenizer.encode(tf.constant([case["text"] for case in cases]))
    texts = [text.decode() for text in tokenizer.decode(ids).numpy()]
    assert tokenizer.vocab_size == 8190
    assert ids.to_list() == [[*case["ids"], 1] for case in cases]
    assert texts == [case["decoded"] for case in cases]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ab", ["ab_"]),
        ("aba", ["ab", "a", "_"]),
        ("ab ab", ["ab_", "ab_"]),
        ("ab  ab", ["ab_", " ", " ", "_", "ab_"]),
        (" ab ", [" ", "_", "ab_", " ", "_"]),
        ("a_", ["a", "_", "\\", "u", "_"]),
        ("\\", ["\\", "\\", "_"]),
        ("é", ["\\", "2", "3", "3", ";", "_"]),
        ("a\n", ["a", "_", "\\", "1", "0", ";", "_"]),
    ],
)
def test_pieces_of_a_text(small, text, pieces):
    assert encode_as_pieces(small, text) == pieces
    assert decode_pieces(small, pieces) == text


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["\\", "a", "_"], "\\a"),
        (["\\", "\\", "\\", "u", "_"], "\\_"),
        (["\\", "\\", "u", "_"], "\\u"),
        (["\\", "9", "_"], "\\9"),
        (["\\", ";", "_"], "\\;"),
        (["\\", *"1114112", ";", "_"], "〓"),
        (["\\", *"99999999999999999999", ";", "_"], "〓"),
        (["\\", *"55296", ";", "_"], "〓"),
        (["\\", *"0000000000097", ";", "_"], "a"),
        (["_", "_", "ab"], "ab"),
    ],
)
def test_decodes_pieces_that_encoding_never_produces(small, pieces, text):
    # As in tensor2tensor text_encoder.py:_unescape_token, except for surrogates, which
    # are not valid in UTF-8.
    assert decode_pieces(small, pieces) == text


def test_duplicate_piece_has_the_higher_id():
    pieces = [*SMALL, "ab"]
    tokenizer = WordPieceTokenizer(format_file(pieces), "twice.subwords")
    (ids,) = tokenizer.encode(tf.constant(["aba"])).to_list()
    assert ids[0] == len(pieces) - 1


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"'a'\n'b'\n", "first two lines must be '<pad>_' and '<EOS>_'"),
        (b"'<pad>_'\n'<EOS>_'\n'a'\n", r"pieces 0 1 .* are missing"),
        (b"'<pad>_'\n''\n", r"v\.subwords:2: empty piece"),
        (b"'<pad>_'\n\xff\n", "not UTF-8 at byte 9"),
        (b"'<pad>_'\n'<EOS>_'\n'a\0b'\n", r"v\.subwords:3: a NUL character"),
        (
            format_file([*SMALL, "a" * 257]),
            "tensorflow_text rejects the vocabulary: Vo",
        ),
    ],
)
def test_rejects_an_invalid_vocabulary(contents, message):
    with pytest.raises(UserError, match=message):
        WordPieceTokenizer(contents, "v.subwords")
