"""Spans and words of tokens, for both kinds of vocabularies."""

import itertools

import pytest
import tensorflow as tf

from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.token_spans import (
    SpelledText,
    TokenSpan,
    spell_tokens,
    words_of_tokens,
)
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, format_file
from tests import tiny

SMALL = ["<pad>_", "<EOS>_", *sorted(ESCAPE_CHARACTERS)]
SMALL += ["a", "b", "ab", "ab_", " ", ",", '"', ', "_', "1_"]


@pytest.fixture(scope="module")
def small():
    """Creates a tokenizer of a few word pieces."""
    return WordPieceTokenizer(format_file(SMALL), "small.subwords")


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    lines = itertools.chain.from_iterable(tiny.pairs("train"))
    build_vocabulary("sentencepiece", lines, 300, path)
    return load_tokenizer(path)


def spelled_text(tokenizer, text):
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    (spelled,) = spell_tokens(tokenizer, [ids[:-1]])
    return spelled


@pytest.mark.parametrize(
    ("text", "pieces", "words"),
    [
        ("ab", ["ab"], [(0,)]),
        # The pieces are `ab`, `a` and `_`.
        ("aba", ["ab", "a", ""], [(0,), (0,), (0,)]),
        ("aba ab", ["ab", "a", "", " ab"], [(0,), (0,), (0,), (1,)]),
        ('ab, "ab', ["ab", ', "', "ab"], [(0,), (0, 1), (1,)]),
        # The pieces of the trailing space are ` ` and `_`.
        ("ab ", ["ab", " ", ""], [(0,), (), ()]),
        # The pieces of the escape are `\`, `2`, `3`, `3`, `;` and `_`.
        (
            "ab é",
            ["ab", "", "", "", "", " é", ""],
            [(0,), (1,), (1,), (1,), (1,), (1,), (1,)],
        ),
        ("a_b", ["a", "", "", "_", "", "b", ""], [(0,)] * 7),
        ("", [], []),
    ],
)
def test_pieces_and_words_of_word_pieces(small, text, pieces, words):
    spelled = spelled_text(small, text)
    assert spelled.text == text
    assert spelled.pieces() == pieces
    assert words_of_tokens(spelled, text) == words


def test_bytes_of_a_character_belong_to_its_word(sentencepiece):
    # U+20AC is not in the vocabulary: the tokens are U+2581 and its three bytes.
    spelled = spelled_text(sentencepiece, "one €")
    assert spelled.text == "one €"
    assert spelled.pieces()[-4:] == [" ", "", "", "€"]
    assert [span.pending for span in spelled.spans[-4:]] == [False, True, True, False]
    assert words_of_tokens(spelled, "one €")[-4:] == [(1,)] * 4
    first = spelled_text(sentencepiece, "€ one")
    assert first.pieces()[:4] == ["", "", "", "€"]
    assert words_of_tokens(first, "€ one")[:4] == [(0,)] * 4


TEXTS = [
    "one two three",
    " fünf  zehn\tsieben ",
    "x\u2581y \ufffd 日本 one",
    "one\u00a0two",
    "\\2 _ \\u;",
    "",
]


@pytest.mark.parametrize("kind", ["sentencepiece", "small"])
def test_spans_cover_the_text_once_and_every_word_has_a_token(kind, request):
    tokenizer = request.getfixturevalue(kind)
    rows = [row[:-1] for row in tokenizer.encode(tf.constant(TEXTS)).to_list()]
    for text, row, spelled in zip(
        TEXTS, rows, spell_tokens(tokenizer, rows), strict=True
    ):
        assert "".join(spelled.pieces()) == spelled.text == text
        assert len(spelled.spans) == len(row)
        words = words_of_tokens(spelled, text)
        assert {n for numbers in words for n in numbers} == set(
            range(len(text.split()))
        )
        flat = [n for numbers in words for n in numbers]
        assert flat == sorted(flat)


@pytest.mark.parametrize(
    ("text", "decoded", "tokens", "words"),
    [
        # The vocabulary drops spaces, or decomposes a character.
        ("a  b ", "a b", ["a", " b"], [(0,), (1,)]),
        ("½ c", "1/2 c", ["1", "/2", " c"], [(0,), (0,), (1,)]),
        # The vocabulary inserts a space, which does not separate words.
        ("x¨y z", "x ¨y z", ["x", " ¨", "y", " z"], [(0,), (0,), (0,), (1,)]),
    ],
)
def test_words_are_counted_in_the_original_text(text, decoded, tokens, words):
    ends = list(itertools.accumulate(map(len, tokens)))
    spans = [
        TokenSpan(end - len(token), end, False)
        for end, token in zip(ends, tokens, strict=True)
    ]
    assert words_of_tokens(SpelledText(decoded, spans), text) == words
