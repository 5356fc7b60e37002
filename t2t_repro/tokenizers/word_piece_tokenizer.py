r"""tensor2tensor's invertible word pieces in the graph (paper: English-French)."""

from __future__ import annotations

import os

import tensorflow as tf

from t2t_repro.tokenizers.tokenizer import Tokenizer, row_numbers
from t2t_repro.tokenizers.word_pieces import (
    class_boundaries,
    from_file,
    spell_character,
)

# What a damaged escape (a code that is no character) becomes, as in tensor2tensor.
_UNDEFINED_CODE = 0x3013
# A word of any length is cut into pieces (the operation's default gives up at 100).
_MAX_BYTES_PER_WORD = 2**30


class WordPieceTokenizer(Tokenizer):
    """A vocabulary of word pieces as a tokenizer: `decode(encode(x))` is `x`.

    The rules of word_pieces.py as TensorFlow operations. keras-nlp's WordPieceTokenizer
    loses spaces ("running ."), so only the search for the longest piece is taken from
    tensorflow_text.

    Source: paper section 5.1 (32,000 word pieces); tensor2tensor
    text_encoder.py:SubwordTextEncoder.

    Args:
        contents: the bytes of the vocabulary file.
        path: where they come from; its base name becomes `file_name`.

    Raises:
        UserError: the file is damaged or no vocabulary of this kind.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        """Reads the pieces and lays out the tables that the graph looks them up in."""
        path = os.fspath(path)
        pieces = from_file(contents, path)
        super().__init__(contents, os.path.basename(path), len(pieces))
        import tensorflow_text  # as late as keras-nlp, which brings it along

        # A piece that stands twice has the later id, as in tensor2tensor.
        ids = {piece: number for number, piece in enumerate(pieces) if number >= 2}
        self._ids = tf.constant(list(ids.values()), tf.int32)
        self._pieces = tf.constant(["", "", *pieces[2:]])
        self._longest_pieces = tensorflow_text.FastWordpieceTokenizer(
            vocab=list(ids),
            suffix_indicator="",  # a piece is written alike wherever it stands
            unknown_token="_",  # never used: every character can be spelled
            max_bytes_per_word=_MAX_BYTES_PER_WORD,
            token_out_type=tf.int32,
            no_pretokenization=True,
        )
        alphabet = sorted(piece for piece in ids if len(piece) == 1)
        self._alphabet = tf.constant([ord(char) for char in alphabet], tf.int32)
        self._spellings = tf.constant(
            [spell_character(char, alphabet) for char in alphabet]
        )
        self._class_boundaries = tf.constant(class_boundaries(), tf.int32)

    @property
    def pieces(self) -> list[str]:
        """The line of each id in the vocabulary file, without its quotes."""
        return from_file(self._contents, self.file_name)

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        decoded = tf.strings.unicode_decode(text, "UTF-8")
        # All characters of the batch in one row, (characters,), and their texts.
        codes, rows = decoded.values, row_numbers(decoded)
        alphanumeric = self._is_alphanumeric(codes)
        starts = _differs_from_previous(rows) | (
            alphanumeric != tf.concat([[False], alphanumeric], 0)[:-1]
        )
        words = tf.strings.unsorted_segment_join(
            self._spell(codes),
            tf.cumsum(tf.cast(starts, tf.int64)) - 1,
            tf.math.count_nonzero(starts),
        )
        rows = tf.boolean_mask(rows, starts)
        # A single space is left out, except at either end of its text.
        last = tf.reverse(_differs_from_previous(tf.reverse(rows, [0])), [0])
        kept = tf.not_equal(words, " ") | _differs_from_previous(rows) | last
        words, rows = tf.boolean_mask(words, kept), tf.boolean_mask(rows, kept)
        pieces = self._longest_pieces.tokenize(tf.strings.join([words, "_"]))
        return tf.RaggedTensor.from_value_rowids(
            tf.gather(self._ids, pieces.values),
            tf.gather(rows, row_numbers(pieces)),
            nrows=decoded.nrows(),
            validate=False,
        )

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        spelled = tf.strings.unsorted_segment_join(
            tf.gather(self._pieces, pieces.values), row_numbers(pieces), pieces.nrows()
        )
        # All words of the batch in one row, (words,), and their texts.
        split = tf.strings.split(spelled, "_")
        some = tf.not_equal(split.values, "")
        rows = tf.boolean_mask(row_numbers(split), some)
        words = _unescape(tf.boolean_mask(split.values, some))
        first = tf.strings.unicode_decode(
            tf.strings.substr(words, 0, 1, unit="UTF8_CHAR"), "UTF-8"
        )
        alphanumeric = self._is_alphanumeric(first.to_tensor(shape=[None, 1])[:, 0])
        # Two words of letters in turn: the space between them had been left out.
        spaced = (
            alphanumeric
            & tf.concat([[False], alphanumeric], 0)[:-1]
            & ~_differs_from_previous(rows)
        )
        words = tf.strings.join([tf.where(spaced, " ", ""), words])
        return tf.strings.unsorted_segment_join(words, rows, pieces.nrows())

    def _is_alphanumeric(self, codes: tf.Tensor) -> tf.Tensor:
        """Code points, int32 `(n,)` -> bool `(n,)`."""
        return tf.searchsorted(self._class_boundaries, codes, side="right") % 2 == 1

    def _spell(self, codes: tf.Tensor) -> tf.Tensor:
        """Code points, int32 `(n,)` -> their spellings, string `(n,)`."""
        place = tf.searchsorted(self._alphabet, codes)
        place = tf.minimum(place, tf.size(self._alphabet) - 1)
        spelled = tf.gather(self._spellings, place)
        unknown = tf.where(tf.gather(self._alphabet, place) != codes)
        numbers = tf.strings.as_string(tf.gather_nd(codes, unknown))
        return tf.tensor_scatter_nd_update(
            spelled, unknown, tf.strings.join(["\\", numbers, ";"])
        )


def _differs_from_previous(rows: tf.Tensor) -> tf.Tensor:
    """Row numbers, int64 `(n,)` -> bool `(n,)`: whether another row begins here."""
    return rows != tf.concat([[-1], rows], 0)[:-1]


def _unescape(words: tf.Tensor) -> tf.Tensor:
    r"""Takes back the escapes of words without their final `_`, string `(n,)`.

    The words hold neither `_` nor a line end, so that in between a line end stands for
    `\\`, and `_` for a cut. In a run of backslashes the pairs count from the left.
    """
    words = tf.strings.regex_replace(words, r"\\\\", "\n")
    words = tf.strings.regex_replace(words, r"(\\[0-9]+;)", r"_\1_")
    parts = tf.strings.split(words, "_")
    flat = parts.values
    is_code = tf.strings.regex_full_match(flat, r"\\[0-9]+;")
    is_small = tf.strings.regex_full_match(flat, r"\\0*[0-9]{1,7};")
    digits = tf.strings.regex_replace(flat, "[^0-9]", "")
    codes = tf.strings.to_number(tf.where(is_small, digits, "1114112"), tf.int32)
    surrogate = (codes >= 0xD800) & (codes <= 0xDFFF)
    defined = (codes <= 0x10FFFF) & ~surrogate
    characters = tf.strings.unicode_encode(
        tf.where(defined, codes, _UNDEFINED_CODE)[:, tf.newaxis], "UTF-8"
    )
    flat = tf.strings.regex_replace(flat, r"\\u", "_")
    flat = tf.strings.regex_replace(flat, "\n", r"\\")
    flat = tf.where(is_code, characters, flat)
    return tf.strings.unsorted_segment_join(flat, row_numbers(parts), parts.nrows())
