r"""Division of texts into sentences and line breaks, with TensorFlow operations only.

The same graph divides texts in the commands, in Python and in an export. A text becomes
pieces and separators, which alternate and concatenate to the text byte for byte. The
rule for sentences is in `sentence_rules`. A sentence that is too long for the model is
split near its middle: after a comma or similar sign, otherwise between words, otherwise
within a word.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.texts.sentence_rules import (
    CLAUSE_END,
    FIELD,
    FIRST_BREAK,
    LINE_BREAKS,
    MARKS,
    SPACE,
    sentence_rules,
)
from t2t_repro.tokenizers.tokenizer import LABEL, Tokenizer, row_numbers

MOST_CHARACTERS = 65_536
"""Maximum number of characters of a line that are read: 128 per subword. It limits the
memory of the tokenizer."""

_TEXT = tf.TensorSpec([None], tf.string)
_LAST_WORD = rf"(?s)^(.*{SPACE}).*$"
_LAST_CLAUSE = rf"(?s)^(.*{CLAUSE_END}).*$"
# The last character is of a script without spaces between words, or a full-width sign.
_ENDS_WIDE = (
    r"(?s).*[\p{Han}\p{Hiragana}\p{Katakana}\x{3001}-\x{3011}\x{ff01}-\x{ff1f}]"
)


class Sentences(NamedTuple):
    """Pieces of a batch of texts; each is followed by its separator.

    The pieces of a text are in order and not interrupted by others.

    Attributes:
        rows: int64 (pieces,), index of the text.
        labels: string (pieces,), language label of the text and a space, or "".
        pieces: string (pieces,). The first and the last piece of a text may be "".
        separators: string (pieces,), white space or "".
    """

    rows: tf.Tensor
    labels: tf.Tensor
    pieces: tf.Tensor
    separators: tf.Tensor

    @property
    def inputs(self) -> tf.Tensor:
        """Inputs of the model, string (pieces,): the pieces with their label."""
        complete = tf.strings.regex_full_match(self.pieces, rf"(?s)({LABEL}.*)?")
        return tf.where(complete, self.pieces, self.labels + self.pieces)

    def join(self, translations: tf.Tensor, batch: int | tf.Tensor) -> tf.Tensor:
        """Joins the translations of the pieces with the separators.

        Between sentences without a separator, a space is added unless the target
        language is written without spaces.

        Args:
            translations: string (pieces,).
            batch: Number of texts.

        Returns:
            Translations of the texts, string (batch,).
        """
        same_text = tf.equal(self.rows[1:], self.rows[:-1])
        is_inner = tf.concat([same_text, [False]], 0)[: tf.size(self.rows)]
        is_wide = tf.strings.regex_full_match(translations, _ENDS_WIDE)
        glued = is_inner & tf.equal(self.separators, "") & ~is_wide
        separators = tf.where(glued, " ", self.separators)
        return tf.strings.unsorted_segment_join(
            translations + separators, self.rows, batch
        )


class SentenceSplitter(tf.Module):
    """Splits texts into sentences that are short enough for a model.

    Args:
        tokenizer: Tokenizer of the model.
        max_input_length: Maximum number of subwords of a sentence, EOS included.
        language: Code of the source language.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_input_length: int, language: str
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.max_input_length = max_input_length
        self._language = language

    @cached_property
    def _rules(self) -> tuple[tuple[str, str], ...]:
        # Most commands divide no text, and importing sacremoses takes 0.1 s.
        return sentence_rules(self._language)

    @tf.function(input_signature=[_TEXT], autograph=False)
    def sentences(self, text: tf.Tensor) -> Sentences:
        """Divides texts, string (batch,), into sentences, and long ones further."""
        with tf.device("CPU"):
            return self._shorten(self._divide(text, self._rules))

    @tf.function(input_signature=[_TEXT], autograph=False)
    def lines(self, text: tf.Tensor) -> Sentences:
        """Divides texts, string (batch,), only at line breaks (U+000A)."""
        with tf.device("CPU"):
            return self._divide(text, LINE_BREAKS, FIRST_BREAK)

    @tf.function(input_signature=[_TEXT], autograph=False)
    def short_lines(self, text: tf.Tensor) -> Sentences:
        """Divides texts, string (batch,), into lines.

        A text that has a line with too many subwords is divided into sentences.
        """
        with tf.device("CPU"):
            lines = self._divide(text, LINE_BREAKS, FIRST_BREAK)
            is_long = tf.math.unsorted_segment_max(
                tf.cast(self._too_long(lines), tf.int32), lines.rows, tf.size(text)
            )
            long = tf.where(is_long > 0)[:, 0]
            parts = self._divide(tf.gather(text, long), self._rules)
            parts = parts._replace(rows=tf.gather(long, parts.rows))
            is_short = tf.gather(is_long, lines.rows) <= 0
            return self._shorten(
                Sentences(
                    *(
                        tf.concat([tf.boolean_mask(line, is_short), part], 0)
                        for line, part in zip(lines, parts, strict=True)
                    )
                )
            )

    def _divide(
        self, text: tf.Tensor, rules: Sequence[tuple[str, str]], before: str = r"\s*"
    ) -> Sentences:
        """Splits texts where the rules insert `FIELD` around separators.

        `before` is a regular expression of the separators before a language label.
        """
        # The parts of a marked copy have the lengths of the parts of the text, because
        # marks that the text contains are replaced by a character of the same length.
        marked = tf.strings.regex_replace(text, MARKS, "\ufffd")
        for pattern, rewrite in rules:
            marked = tf.strings.regex_replace(marked, pattern, rewrite)
        parts = tf.strings.split(marked, FIELD)
        # The last piece of a text is followed by an empty separator.
        last = tf.RaggedTensor.from_tensor(tf.fill([parts.nrows(), 1], ""))
        parts = tf.concat([parts, last], axis=1)
        rows = row_numbers(parts)
        lengths = tf.strings.length(parts.values)
        starts = tf.cumsum(lengths, exclusive=True)
        starts -= tf.gather(starts, tf.gather(parts.row_starts(), rows))
        values = tf.strings.substr(tf.gather(text, rows), starts, lengths)
        labels = tf.gather(self._labels(text, before), rows[::2])
        return Sentences(rows[::2], labels, values[::2], values[1::2])

    def _labels(self, text: tf.Tensor, before: str) -> tf.Tensor:
        """Returns the language label of each text and a space, or ""."""
        if not self.tokenizer.has_labels:
            return tf.zeros_like(text)
        is_labelled = tf.strings.regex_full_match(text, rf"(?s){before}{LABEL}.*")
        labels = tf.strings.regex_replace(text, rf"(?s)^{before}({LABEL}).*$", r"\1 ")
        return tf.where(is_labelled, labels, "")

    def _too_long(self, sentences: Sentences) -> tf.Tensor:
        """Returns whether pieces have too many subwords, bool (pieces,)."""
        characters = tf.strings.length(sentences.pieces, unit="UTF8_CHAR")
        # Bounds the memory of the tokenizer.
        inputs = tf.strings.substr(
            sentences.inputs, 0, MOST_CHARACTERS, unit="UTF8_CHAR"
        )
        tokens = self.tokenizer.encode(inputs).row_lengths()
        is_long = (tokens > self.max_input_length) | (characters > MOST_CHARACTERS)
        return is_long & (characters > 1)

    def _shorten(self, sentences: Sentences) -> Sentences:
        """Halves sentences with too many subwords until all are short enough."""

        def halve(each: Sentences, is_long: tf.Tensor) -> tuple[Sentences, tf.Tensor]:
            heads, spaces, tails = _halves(each.pieces)
            # (pieces, 2): the head and the tail of a long piece; a short piece, unused
            pairs = Sentences(
                tf.stack([each.rows] * 2, 1),
                tf.stack([each.labels] * 2, 1),
                tf.stack([tf.where(is_long, heads, each.pieces), tails], 1),
                tf.stack(
                    [tf.where(is_long, spaces, each.separators), each.separators], 1
                ),
            )
            used = tf.stack([tf.ones_like(is_long), is_long], 1)
            halves = Sentences(*(tf.boolean_mask(pair, used) for pair in pairs))
            return halves, self._too_long(halves)

        shape = tf.TensorShape([None])
        result, _ = tf.while_loop(
            lambda _, is_long: tf.reduce_any(is_long),
            halve,
            (sentences, self._too_long(sentences)),
            shape_invariants=(Sentences(shape, shape, shape, shape), shape),
        )
        return result


def _halves(pieces: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Splits pieces, string (pieces,), in the middle half of their characters.

    Returns:
        Heads, the white space after them, and tails, each string (pieces,). A piece of
        one character has an empty head.
    """
    characters = tf.strings.length(pieces, unit="UTF8_CHAR")
    quarter = characters // 4
    middle = tf.strings.substr(pieces, quarter, characters // 2, unit="UTF8_CHAR")
    before = characters // 2 - quarter
    for pattern in (_LAST_WORD, _LAST_CLAUSE):
        beginning = tf.strings.regex_replace(middle, pattern, r"\1")
        length = tf.strings.length(beginning, unit="UTF8_CHAR")
        before = tf.where(tf.strings.regex_full_match(middle, pattern), length, before)
    heads = tf.strings.substr(
        pieces, tf.zeros_like(quarter), quarter + before, unit="UTF8_CHAR"
    )
    size = tf.strings.length(heads)
    tails = tf.strings.substr(pieces, size, tf.strings.length(pieces) - size)
    texts = tf.strings.regex_replace(heads, f"{SPACE}+$", "")
    size = tf.strings.length(texts)
    spaces = tf.strings.substr(heads, size, tf.strings.length(heads) - size)
    return texts, spaces, tails
