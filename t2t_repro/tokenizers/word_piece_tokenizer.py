r"""tensor2tensor's invertible word pieces in the graph (paper: English-French)."""

from __future__ import annotations

import os

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import spell_character
from t2t_repro.tokenizers.tokenizer import Tokenizer, row_numbers
from t2t_repro.tokenizers.word_pieces import class_boundaries, parse_file

# Code point that replaces an escape of an invalid code point, as in tensor2tensor.
_UNDEFINED_CODE = 0x3013
# Splits words of any length; the operation's default limit is 100 bytes.
_MAX_BYTES_PER_WORD = 2**30


class WordPieceTokenizer(Tokenizer):
    """Lossless tokenizer of tensor2tensor's word pieces.

    Implements the rules of word_pieces.py with TensorFlow operations. Uses
    tensorflow_text only for the longest-match search, because keras-nlp's
    WordPieceTokenizer loses spaces ("running .").

    Source: paper section 5.1 (32,000 word pieces); tensor2tensor
    text_encoder.py:SubwordTextEncoder.

    Args:
        contents: Bytes of the vocabulary file.
        path: Path of the file; its base name becomes `file_name`.

    Raises:
        UserError: The file is damaged or has another format, or tensorflow_text cannot
            search its pieces.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        """Parses the pieces and creates the lookup tables of the graph."""
        path = os.fspath(path)
        pieces = parse_file(contents, path)
        super().__init__(contents, os.path.basename(path), len(pieces))
        import tensorflow_text  # slow to import

        # A duplicate piece gets the higher id, as in tensor2tensor.
        ids = {piece: number for number, piece in enumerate(pieces) if number >= 2}
        self._ids = tf.constant(list(ids.values()), tf.int32)
        self._pieces = tf.constant(["", "", *pieces[2:]])
        try:
            self._longest_pieces = tensorflow_text.FastWordpieceTokenizer(
                vocab=list(ids),
                suffix_indicator="",  # no marker on pieces inside of a word
                unknown_token="_",  # required but unused: every text can be spelled
                max_bytes_per_word=_MAX_BYTES_PER_WORD,
                token_out_type=tf.int32,
                no_pretokenization=True,
            )
        except RuntimeError as error:  # For example, a piece has more than 256 bytes.
            reason = " ".join(str(error).split())
            raise UserError(
                f"{path}: tensorflow_text rejects the vocabulary: {reason:.200}; use "
                "the file that the model was trained with"
            ) from None
        alphabet = sorted(piece for piece in ids if len(piece) == 1)
        self._alphabet = tf.constant([ord(char) for char in alphabet], tf.int32)
        self._spellings = tf.constant(
            [spell_character(char, alphabet) for char in alphabet]
        )
        self._class_boundaries = tf.constant(class_boundaries(), tf.int32)

    @property
    def pieces(self) -> list[str]:
        """The piece of each id, as spelled in the vocabulary file, without quotes."""
        return parse_file(self._contents, self.file_name)

    def encode_terms(self, terms: tf.Tensor) -> tf.RaggedTensor:
        """Encodes terms with a space next to a first or last character like `{`.

        Decoding restores spaces only between alphanumeric words.
        """
        terms = tf.strings.regex_replace(terms, r"^([^\pL\pN])", r" \1")
        return super().encode_terms(
            tf.strings.regex_replace(terms, r"([^\pL\pN])$", r"\1 ")
        )

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        decoded = tf.strings.unicode_decode(text, "UTF-8")
        # Concatenate the characters of the batch: codes and rows are (characters,).
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
        # Drop single spaces, except at the beginning or end of a text.
        last = tf.reverse(_differs_from_previous(tf.reverse(rows, [0])), [0])
        keep = tf.not_equal(words, " ") | _differs_from_previous(rows) | last
        words, rows = tf.boolean_mask(words, keep), tf.boolean_mask(rows, keep)
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
        # Concatenate the words of the batch: words and rows are (words,).
        split = tf.strings.split(spelled, "_")
        is_nonempty = tf.not_equal(split.values, "")
        rows = tf.boolean_mask(row_numbers(split), is_nonempty)
        words = _unescape(tf.boolean_mask(split.values, is_nonempty))
        first = tf.strings.unicode_decode(
            tf.strings.substr(words, 0, 1, unit="UTF8_CHAR"), "UTF-8"
        )
        alphanumeric = self._is_alphanumeric(first.to_tensor(shape=[None, 1])[:, 0])
        # Restore the space that encoding dropped between two alphanumeric words.
        needs_space = (
            alphanumeric
            & tf.concat([[False], alphanumeric], 0)[:-1]
            & ~_differs_from_previous(rows)
        )
        words = tf.strings.join([tf.where(needs_space, " ", ""), words])
        return tf.strings.unsorted_segment_join(words, rows, pieces.nrows())

    def _is_alphanumeric(self, codes: tf.Tensor) -> tf.Tensor:
        """Returns whether code points int32 `(n,)` are alphanumeric, bool `(n,)`."""
        return tf.searchsorted(self._class_boundaries, codes, side="right") % 2 == 1

    def _spell(self, codes: tf.Tensor) -> tf.Tensor:
        """Returns the spellings, string `(n,)`, of code points, int32 `(n,)`."""
        index = tf.searchsorted(self._alphabet, codes)
        index = tf.minimum(index, tf.size(self._alphabet) - 1)
        spelled = tf.gather(self._spellings, index)
        unknown = tf.where(tf.gather(self._alphabet, index) != codes)
        numbers = tf.strings.as_string(tf.gather_nd(codes, unknown))
        return tf.tensor_scatter_nd_update(
            spelled, unknown, tf.strings.join(["\\", numbers, ";"])
        )


def _differs_from_previous(rows: tf.Tensor) -> tf.Tensor:
    """Returns where a new row begins, bool `(n,)`, from row numbers int64 `(n,)`."""
    return rows != tf.concat([[-1], rows], 0)[:-1]


def _unescape(words: tf.Tensor) -> tf.Tensor:
    r"""Replaces the escapes in words, string `(n,)`, without their final `_`.

    The words contain neither `_` nor a line end, so these serve as temporary marks: a
    line end replaces `\\`, and `_` separates numeric escapes. Backslashes in a run are
    paired from the left.
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
