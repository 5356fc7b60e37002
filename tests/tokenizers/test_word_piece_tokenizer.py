"""Word pieces in the graph against what tensor2tensor itself gave."""

import json

import pytest
import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, to_file

SMALL = ["<pad>_", "<EOS>_", *sorted(ESCAPE_CHARACTERS), "a", "b", "ab", "ab_", " "]


@pytest.fixture(scope="module")
def small():
    return WordPieceTokenizer(to_file(SMALL), "small.subwords")


def pieces_of(tokenizer, text: str) -> list[str]:
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    return [SMALL[number] for number in ids[:-1]]


def decoded(tokenizer, pieces: list[str]) -> str:
    ids = tf.constant([[SMALL.index(piece) for piece in pieces]])
    return tokenizer.decode(ids).numpy()[0].decode()


def test_ids_and_texts_are_tensor2tensors(shared_dir):
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
def test_a_text_is_spelled_by_the_rules(small, text, pieces):
    assert pieces_of(small, text) == pieces
    assert decoded(small, pieces) == text


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
def test_pieces_that_no_text_gives_still_decode(small, pieces, text):
    # tensor2tensor text_encoder.py:_unescape_token; a surrogate is undefined here,
    # because it cannot be written in UTF-8.
    assert decoded(small, pieces) == text


def test_a_piece_that_stands_twice_has_the_later_id():
    pieces = [*SMALL, "ab"]
    tokenizer = WordPieceTokenizer(to_file(pieces), "twice.subwords")
    (ids,) = tokenizer.encode(tf.constant(["aba"])).to_list()
    assert ids[0] == len(pieces) - 1


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"'a'\n'b'\n", "first two lines must be '<pad>_' and '<EOS>_'"),
        (b"'<pad>_'\n'<EOS>_'\n'a'\n", r"pieces 0 1 .* are missing"),
        (b"'<pad>_'\n''\n", r"v\.subwords:2: an empty piece"),
        (b"'<pad>_'\n\xff\n", "not UTF-8 at byte 9"),
    ],
)
def test_what_is_no_vocabulary_is_refused(contents, message):
    with pytest.raises(UserError, match=message):
        WordPieceTokenizer(contents, "v.subwords")
