"""Validation of requests, and notes about their texts, in the graph."""

import tensorflow as tf

from t2t_repro.texts.sentences import MOST_CHARACTERS
from t2t_repro.tokenizers.tokenizer import LABEL, Tokenizer

_MOST_OF_A_NAME = 80  # Characters of a term in notes.
# The characters that `str.strip` removes.
_BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


def truncate_texts(text: tf.Tensor) -> tf.Tensor:
    """Truncates texts, string (batch,), to `MOST_CHARACTERS` characters."""
    return tf.strings.substr(text, 0, MOST_CHARACTERS, unit="UTF8_CHAR")


def is_blank(text: tf.Tensor) -> tf.Tensor:
    """Returns whether each text is empty or white space: bool (batch,)."""
    return tf.strings.regex_full_match(text, _BLANK)


def check_pairs(text: tf.Tensor, translation: tf.Tensor) -> None:
    """Rejects different numbers of texts and translations (INVALID_ARGUMENT)."""
    tf.debugging.assert_equal(
        tf.shape(text)[0],
        tf.shape(translation)[0],
        "text and translation must have the same number of elements",
    )


def count_omitted(rows: tf.RaggedTensor, longest: int) -> tf.Tensor:
    """Returns how many ids of each row `cut_rows` omits: int64 (batch,)."""
    return tf.maximum(rows.row_lengths() - longest, 0)


def note_unread(number: tf.Tensor, what: str) -> tf.Tensor:
    """Returns notes that name a number, int (batch,): string (batch,), "" for 0."""
    note = f"{what} that were not read: " + tf.strings.as_string(number)
    return tf.where(number > 0, note, "")


def note_unread_text(text: tf.Tensor, subwords: tf.Tensor, of: str = "") -> tf.Tensor:
    """Returns notes about the ends of texts that were not read: string (batch,).

    Args:
        text: string (batch,), before `truncate_texts`.
        subwords: int (batch,), number of subwords that were not read.
        of: Words that follow the unit in the note.
    """
    lengths = (
        tf.strings.length(each, unit="UTF8_CHAR")
        for each in (text, truncate_texts(text))
    )
    characters = tf.subtract(*lengths)
    return join_notes(
        note_unread(characters, f"characters{of}"),
        note_unread(subwords, f"subwords{of}"),
    )


def note_unread_labels(
    tokenizer: Tokenizer, text: tf.Tensor, after_space: bool
) -> tf.Tensor:
    """Returns notes about labels that select no language: string (batch,).

    Args:
        tokenizer: Tokenizer of the source.
        text: string (batch,).
        after_space: Whether a label that follows white space is read as a label.
    """
    if not tokenizer.has_labels:
        return tf.zeros_like(text)
    label = tf.strings.regex_replace(text, rf"(?s)^\s*({LABEL}).*$", r"\1")
    has_label = tf.strings.regex_full_match(text, rf"(?s)\s*{LABEL}.*")
    ids = tokenizer.encode(tf.where(has_label, label, ""))
    unknown = tf.reduce_any(tf.equal(ids.to_tensor(), tokenizer.unknown_id or 0), 1)
    note = tf.where(
        has_label & unknown, "label that is not in the vocabulary: " + label, ""
    )
    if after_space:
        return note
    spaced = has_label & tf.strings.regex_full_match(text, r"(?s)\s.*")
    return tf.where(spaced, "label that is read as text: " + label, note)


def term_rows(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits texts at line breaks into terms: string (batch,) to (batch, terms).

    White space within a term becomes a single space. Blank lines are skipped.
    """
    text = tf.strings.regex_replace(truncate_texts(text), r"[ \t\r\f\v]+", " ")
    text = tf.strings.regex_replace(text, r" ?\n[ \n]*", "\n")
    return tf.strings.split(tf.strings.strip(text), "\n")


def note_missing_terms(terms: tf.Tensor) -> tf.Tensor:
    """Returns notes that name terms, string (batch, terms), padded with ""."""
    names = tf.strings.substr(terms, 0, _MOST_OF_A_NAME, unit="UTF8_CHAR")
    names = tf.strings.reduce_join(names, axis=1, separator="\n")
    names = tf.strings.regex_replace(tf.strings.strip(names), r"\n+", ", ")
    names = tf.strings.unicode_transcode(names, "UTF-8", "UTF-8")
    note = "terms that the translation lacks: " + names
    return tf.where(tf.equal(names, ""), "", note)


def sentence_notes(
    tokenizer: Tokenizer, text: tf.Tensor, subwords: tf.Tensor
) -> tf.Tensor:
    """Returns notes about texts of one sentence each: string (batch,).

    Args:
        tokenizer: Tokenizer of the source.
        text: string (batch,), before `truncate_texts`.
        subwords: int (batch,), number of subwords that were not read.
    """
    labels = note_unread_labels(tokenizer, text, after_space=False)
    lines = tf.strings.strip(truncate_texts(text))
    lines = tf.strings.regex_replace(lines, r"\s*\n\s*", "\n")
    joint = tf.strings.regex_replace(lines, r"\n", "")
    breaks = tf.strings.length(lines) - tf.strings.length(joint)
    note = "lines that were read as one sentence: " + tf.strings.as_string(breaks + 1)
    note = tf.where(breaks > 0, note, "")
    return join_notes(note_unread_text(text, subwords), labels, note)


def join_notes(*notes: tf.Tensor) -> tf.Tensor:
    """Joins the notes about each text, string (batch,), by semicolons."""
    result, *others = notes
    for each in others:
        separate = tf.not_equal(result, "") & tf.not_equal(each, "")
        result += tf.where(separate, "; ", "") + each
    return result
