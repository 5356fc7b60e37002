"""Tests of dividing texts, against sentences that were divided by hand."""

import functools
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_repro.texts.sentences import Sentences, SentenceSplitter
from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from tests.data.code_points import CodePoints
from tests.properties import checked


class Characters(Tokenizer):
    """Fake tokenizer with one token per character."""

    make_plain = functools.partial(PlainTokenizer, CodePoints(), CodePoints())

    def __init__(self):
        super().__init__(b"", "vocab", 2)

    def _to_pieces(self, text):
        codes = tf.strings.unicode_decode(text, "UTF-8")
        return codes.with_row_splits_dtype(tf.int64)

    def _to_text(self, pieces):
        raise NotImplementedError


@functools.cache
def splitter(language="en", longest=500, has_labels=False):
    tokenizer = Characters()
    tokenizer.has_labels = has_labels
    return SentenceSplitter(tokenizer, longest, language)


# A language and a text per line. Between two sentences | takes the place of a space, ||
# that of an empty separator.
CASES = Path(__file__).with_name("sentences.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES.splitlines())
def test_texts_are_divided_into_sentences(case):
    language, text = case.split("\t")
    expected = text.replace("||", "|").split("|")
    text = text.replace("||", "\0").replace("|", " ").replace("\0", "")
    # Eager, because tracing a graph for each language takes longer.
    divide = SentenceSplitter.sentences.python_function
    sentences = divide(splitter(language), tf.constant([text]))
    assert [piece.decode() for piece in sentences.pieces.numpy()] == expected


def pairs(sentences):
    """Returns the pieces and separators of each text."""
    rows = {}
    for row, piece, separator in zip(
        sentences.rows.numpy(),
        sentences.pieces.numpy(),
        sentences.separators.numpy(),
        strict=True,
    ):
        rows.setdefault(int(row), []).append((piece.decode(), separator.decode()))
    return [rows[row] for row in sorted(rows)]


def test_line_breaks_and_tabs_separate():
    text = "\n a \u2028 b\tc.\r\n\r\n  D e. F \n"
    division = splitter()
    assert pairs(division.sentences(tf.constant([text, " ", ""]))) == [
        [
            ("", "\n "),
            ("a", " \u2028 "),
            ("b", "\t"),
            ("c.", "\r\n\r\n  "),
            ("D e.", " "),
            ("F", " \n"),
            ("", ""),
        ],
        [("", " "), ("", "")],
        [("", "")],
    ]
    assert pairs(division.lines(tf.constant([text, " a. B "]))) == [
        [
            ("", "\n "),
            ("a \u2028 b\tc.", "\r\n\r\n  "),
            ("D e. F", " \n"),
            ("", ""),
        ],
        [(" a. B ", "")],
    ]


def test_long_sentences_are_split_after_commas_or_words():
    division = splitter(longest=12)
    texts = ["One two, three four. Five.", "aaa bbb ccc ddd", "x" * 13, "short. It"]
    assert pairs(division.sentences(tf.constant(texts))) == [
        [("One two,", " "), ("three four.", " "), ("Five.", "")],
        [("aaa bbb", " "), ("ccc ddd", "")],
        [("x" * 6, ""), ("x" * 7, "")],
        [("short.", " "), ("It", "")],
    ]
    # Only texts with a line that is too long are divided into sentences.
    texts = ["Ab c. De. E f.\nGh. I.", "Ab. Cd.\nEf. Gh.", " Ab cd. Ef gh.  "]
    assert pairs(division.short_lines(tf.constant(texts))) == [
        [
            ("Ab c.", " "),
            ("De.", " "),
            ("E f.", "\n"),
            ("Gh.", " "),
            ("I.", ""),
        ],
        [("Ab. Cd.", "\n"), ("Ef. Gh.", "")],
        [("", " "), ("Ab cd.", " "), ("Ef gh.", "  "), ("", "")],
    ]


def test_every_sentence_has_the_language_label_of_its_text():
    division = splitter(has_labels=True)
    texts = [" >>deu<< One. Two.\n>>fra<< Three.\n", "One. >>deu<< Two."]
    inputs = division.sentences(tf.constant(texts)).inputs.numpy().tolist()
    assert inputs == [
        *(b"", b">>deu<< One.", b">>deu<< Two.", b">>fra<< Three.", b""),
        *(b"One.", b">>deu<< Two."),
    ]
    # Without division into sentences, spaces remain, and the label after them is text.
    texts = [" >>deu<< One.", " \n >>deu<< One.\nTwo."]
    for divide in (division.lines, division.short_lines):
        assert divide(tf.constant(texts)).inputs.numpy().tolist() == [
            *(b" >>deu<< One.", b"", b">>deu<< One.", b">>deu<< Two.")
        ]
    plain = splitter()
    texts = tf.constant([">>deu<< One. Two."])
    assert plain.sentences(texts).inputs.numpy().tolist() == [b">>deu<< One.", b"Two."]


@pytest.mark.medium
# Most of the time is spent per batch, so that few large batches are fast.
@settings(checked, max_examples=15)
@given(
    st.lists(
        st.text(
            st.sampled_from(
                "aB1 .!?\"'\n\r\t\u3000\u2028\u3002\u300d,\xbb\ufdd0\ufdd1\ufdd2\0é"
            )
            | st.characters(exclude_categories=["Cs"])
        ),
        max_size=20,
    )
)
def test_the_parts_concatenate_to_any_text(texts):
    division = splitter(longest=7)
    batch = tf.constant(texts, tf.string)
    for divide in (division.sentences, division.short_lines):
        sentences = divide(batch)
        parts = ["".join(map("".join, row)) for row in pairs(sentences)]
        assert parts == texts
        tokens = division.tokenizer.encode(sentences.inputs).row_lengths().numpy()
        assert not tokens.size or tokens.max() <= 7


def test_invalid_utf8_is_kept():
    text = b"\xff One. \xc3\x28 Two.\n\xfe"
    division = splitter()
    sentences = division.sentences(tf.constant([text]))
    assert b"".join((sentences.pieces + sentences.separators).numpy()) == text


def test_translations_are_joined_with_the_separators():
    sentences = Sentences(
        tf.constant([0, 0, 1, 1, 1], tf.int64),
        tf.fill([5], ""),
        tf.constant(["\u4f60\u3002", "\u597d\u3002", "a", "b", ""]),
        tf.constant(["", "\n", "  ", "\n", ""]),
    )
    joined = sentences.join(tf.constant(["You.", "Well.", "A", "B", ""]), 3)
    assert joined.numpy().tolist() == [b"You. Well.\n", b"A  B\n", b""]
    # Chinese is written without spaces.
    same = sentences.join(sentences.pieces, 3)
    assert same.numpy()[0].decode() == "\u4f60\u3002\u597d\u3002\n"
