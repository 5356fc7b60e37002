"""Texts as strangers send them, made harmless for the graph."""

import tensorflow as tf

from t2t_repro.translation.translator import MOST_CHARACTERS

# What `str.strip` takes away.
_BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


def beginning(text: tf.Tensor) -> tf.Tensor:
    """Cuts texts, string (batch,), to the `MOST_CHARACTERS` that a translator reads."""
    return tf.strings.substr(text, 0, MOST_CHARACTERS, unit="UTF8_CHAR")


def is_blank(text: tf.Tensor) -> tf.Tensor:
    """Which texts are empty or only spaces: bool (batch,)."""
    return tf.strings.regex_full_match(text, _BLANK)


def check_pairs(text: tf.Tensor, translation: tf.Tensor) -> None:
    """Refuses unequal numbers of texts and translations (INVALID_ARGUMENT)."""
    tf.debugging.assert_equal(
        tf.shape(text)[0],
        tf.shape(translation)[0],
        "text and translation must have the same number of elements",
    )
