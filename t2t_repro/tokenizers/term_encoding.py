"""Encoding of lexical constraints."""

import tensorflow as tf

from t2t_repro.tokenizers.tokenizer import PAD_ID, Tokenizer


def encode_terms(
    target: Tokenizer, terms: tf.Tensor, longest: int, once: bool = True
) -> tf.Tensor:
    """Encodes terms, string (batch, terms), padded with "".

    Args:
        target: Tokenizer of the translations.
        terms: Terms of each sentence.
        longest: Number of tokens to which terms are cut: the longest translation.
        once: Whether repeated terms of a sentence become padding.

    Returns:
        Ids, int32 (batch, terms, length), 0-padded, with at least one term of one
        token. Terms that the vocabulary cannot spell are only padding.
    """
    rows, count = tf.unstack(tf.shape(terms))
    ids = target.encode_terms(tf.reshape(terms, [-1]))[:, :longest].to_tensor()
    if target.unknown_id is not None:
        unknown = tf.reduce_any(tf.equal(ids, target.unknown_id), 1, keepdims=True)
        ids = tf.where(unknown, PAD_ID, ids)
    # (batch * terms, length) -> (batch, terms, length)
    ids = tf.reshape(ids, [rows, count, tf.shape(ids)[1]])
    if once:
        # Strings take less memory than the comparison of all pairs of tokens.
        texts = tf.strings.reduce_join(tf.strings.as_string(ids), 2, separator=" ")
        same = tf.equal(texts[:, :, None], texts[:, None])
        earlier = tf.range(count) < tf.range(count)[:, None]
        repeated = tf.reduce_any(same & earlier, axis=2, keepdims=True)
        ids = tf.where(repeated, PAD_ID, ids)
    missing = [[0, tf.maximum(1 - size, 0)] for size in tf.unstack(tf.shape(ids))]
    return tf.pad(ids, [[0, 0], *missing[1:]])
