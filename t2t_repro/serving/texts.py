"""Texts as strangers send them, made harmless for the graph."""

import tensorflow as tf

from t2t_repro.tokenizers.tokenizer import EOS_ID, Tokenizer
from t2t_repro.translation.translator import BLANK, MOST_CHARACTERS


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
    return tf.strings.regex_full_match(text, BLANK)


def encode(tokenizer: Tokenizer, text: tf.Tensor, longest: int) -> tf.Tensor:
    """Encodes texts, cut to a length.

    Args:
        tokenizer: the vocabulary.
        text: string (batch,).
        longest: the most subwords, EOS included.

    Returns:
        int32 (batch, length), each row ending in EOS, 0-padded.
    """
    ids = tokenizer.encode(text)
    symbols = ids[:, :-1][:, : longest - 1]
    end = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([symbols, end], axis=1).to_tensor()


def check_pairs(text: tf.Tensor, translation: tf.Tensor) -> None:
    """Refuses texts and translations that are not as many (INVALID_ARGUMENT)."""
    tf.debugging.assert_equal(
        tf.shape(text)[0],
        tf.shape(translation)[0],
        "text and translation must have the same number of elements",
    )
