"""What each token spells, for both kinds of vocabularies, and its words."""

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
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, to_file
from tests import tiny

SMALL = ["<pad>_", "<EOS>_", *sorted(ESCAPE_CHARACTERS)]
SMALL += ["a", "b", "ab", "ab_", " ", ",", '"', ', "_', "1_"]


@pytest.fixture(scope="module")
def small():
    """Word pieces by hand; what they spell is known."""
    return WordPieceTokenizer(to_file(SMALL), "small.subwords")


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    lines = itertools.chain.from_iterable(tiny.pairs("train"))
    build_vocabulary("sentencepiece", lines, 300, path)
    return load_tokenizer(path)


def spelled_text(tokenizer, text):
    (ids,) = tokenizer.encode(tf.constant([text])).to_list()
    (found,) = spell_tokens(tokenizer, [ids[:-1]])
    return found


@pytest.mark.parametrize(
    ("text", "pieces", "words"),
    [
        ("ab", ["ab"], [(0,)]),
        # The pieces are `ab`, `a` and `_`.
        ("aba", ["ab", "a", ""], [(0,), (0,), (0,)]),
        ("aba ab", ["ab", "a", "", " ab"], [(0,), (0,), (0,), (1,)]),
        ('ab, "ab', ["ab", ', "', "ab"], [(0,), (0, 1), (1,)]),
        # The space of its own is spelled ` ` and `_`.
        ("ab ", ["ab", " ", ""], [(0,), (), ()]),
        # An escape: `\`, `2`, `3`, `3`, `;` and `_`.
        (
            "ab é",
            ["ab", "", "", "", "", " é", ""],
            [(0,), (1,), (1,), (1,), (1,), (1,), (1,)],
        ),
        ("a_b", ["a", "", "", "_", "", "b", ""], [(0,)] * 7),
        ("", [], []),
    ],
)
def test_word_pieces_spell_what_the_rules_say(small, text, pieces, words):
    found = spelled_text(small, text)
    assert found.text == text
    assert found.pieces() == pieces
    assert words_of_tokens(found, text) == words


def test_the_bytes_of_a_character_belong_to_its_word(sentencepiece):
    # U+2581, then the three bytes of U+20AC, which the vocabulary does not hold.
    found = spelled_text(sentencepiece, "one €")
    assert found.text == "one €"
    assert found.pieces()[-4:] == [" ", "", "", "€"]
    assert [span.pending for span in found.spans[-4:]] == [False, True, True, False]
    assert words_of_tokens(found, "one €")[-4:] == [(1,)] * 4
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
def test_the_spans_cover_every_text_once_and_every_word_has_a_token(kind, request):
    tokenizer = request.getfixturevalue(kind)
    rows = [row[:-1] for row in tokenizer.encode(tf.constant(TEXTS)).to_list()]
    for text, row, found in zip(
        TEXTS, rows, spell_tokens(tokenizer, rows), strict=True
    ):
        assert "".join(found.pieces()) == found.text == text
        assert len(found.spans) == len(row)
        words = words_of_tokens(found, text)
        assert {n for some in words for n in some} == set(range(len(text.split())))
        flat = [n for some in words for n in some]
        assert flat == sorted(flat)


@pytest.mark.parametrize(
    ("given", "decoded", "tokens", "words"),
    [
        # A vocabulary that drops spaces, and one that takes a letter apart.
        ("a  b ", "a b", ["a", " b"], [(0,), (1,)]),
        ("½ c", "1/2 c", ["1", "/2", " c"], [(0,), (0,), (1,)]),
        # One that puts a space where there was none: the words are the given ones.
        ("x¨y z", "x ¨y z", ["x", " ¨", "y", " z"], [(0,), (0,), (0,), (1,)]),
    ],
)
def test_words_are_those_of_the_text_that_was_given(given, decoded, tokens, words):
    ends = list(itertools.accumulate(map(len, tokens)))
    spans = [
        TokenSpan(end - len(token), end, False)
        for end, token in zip(ends, tokens, strict=True)
    ]
    assert words_of_tokens(SpelledText(decoded, spans), given) == words
