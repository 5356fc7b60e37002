"""Validation of requests in the graph."""

import tensorflow as tf

from t2t_repro.translation.translator import MOST_CHARACTERS

# The characters that `str.strip` removes.
_BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


def beginning(text: tf.Tensor) -> tf.Tensor:
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
