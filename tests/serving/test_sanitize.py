"""Tests of the validation of requests."""

import tensorflow as tf

from t2t_repro.serving.sanitize import (
    is_blank,
    note_missing_terms,
    sentence_notes,
    term_rows,
)


def test_blank_characters_are_those_of_isspace():
    characters = [chr(n) for n in range(0x3100) if not 0xD800 <= n < 0xE000]
    blank = is_blank(characters).numpy()
    assert [c for c, is_one in zip(characters, blank, strict=True) if is_one] == [
        c for c in characters if c.isspace()
    ]
    assert is_blank(["", " \u3000", " x "]).numpy().tolist() == [True, True, False]


def test_lines_that_are_read_as_one_sentence_are_noted(tokenizer):
    texts = tf.constant(["one\n\r\n two\n", " one \n", "\n", "one two"])
    notes = sentence_notes(tokenizer, texts, tf.constant([0, 0, 0, 3])).numpy()
    assert notes.tolist() == [
        b"lines that were read as one sentence: 2",
        b"",
        b"",
        b"subwords that were not read: 3",
    ]


def test_terms_are_lines_with_single_spaces():
    rows = term_rows(tf.constant(["\n a \t b\r\n\n \nc\n", " "])).to_list()
    assert rows == [[b"a b", b"c"], [b""]]
    notes = note_missing_terms(
        tf.constant([["", "a b", "", b"c\xff" * 99], ["", "", "", ""]])
    )
    assert [note.decode() for note in notes.numpy()] == [
        "terms that the translation lacks: a b, " + "c\ufffd" * 40,
        "",
    ]
