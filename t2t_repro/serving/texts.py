"""Texts as strangers send them, made harmless for the graph."""

import tensorflow as tf

from t2t_repro.translation.translator import MOST_CHARACTERS

# What `str.strip` takes away.
_BLANK = r"[\x09-\x0d\x1c-\x1f\x{85}\p{Z}]*"


def beginning(text: tf.Tensor) -> tf.Tensor:
    """Leaves away what no translator reads: memory grows with the text.

    Args:
        text: string (batch,), any bytes.

    Returns:
        string (batch,), at most MOST_CHARACTERS characters each.
    """
    return tf.strings.substr(text, 0, MOST_CHARACTERS, unit="UTF8_CHAR")


def is_blank(text: tf.Tensor) -> tf.Tensor:
    """Tells which texts are empty or only spaces: bool (batch,)."""
    return tf.strings.regex_full_match(text, _BLANK)


def check_pairs(text: tf.Tensor, translation: tf.Tensor) -> None:
    """Refuses texts and translations that are not as many (INVALID_ARGUMENT)."""
    tf.debugging.assert_equal(
        tf.shape(text)[0],
        tf.shape(translation)[0],
        "text and translation must have the same number of elements",
    )
