"""Tracks which terms (lexical constraints) each hypothesis contains.

A term is a sequence of tokens that must appear in the output as whole words. A
hypothesis that leaves a term before its end must start the term again.
"""

from typing import NamedTuple

import tensorflow as tf


class Terms(NamedTuple):
    """The terms that must appear in the outputs of a batch.

    Attributes:
        ids: int32 (batch, terms, length), each term 0-padded; all 0 for none.
        joins_next: bool (vocab,), whether a token ends inside of a word.
        joins_last: bool (vocab,), whether a token begins inside of a word.
    """

    ids: tf.Tensor
    joins_next: tf.Tensor
    joins_last: tf.Tensor


class TermState(NamedTuple):
    """Progress through a sentence's terms in its n hypotheses or candidates.

    Attributes:
        met: bool (rows, n, terms), whether the term is in the hypothesis; True for
            padding.
        current: int32 (rows, n), the index of the term at the end of the hypothesis, or
            `terms` if it ends in no term.
        matched: int32 (rows, n), number of tokens of the current term so far.
    """

    met: tf.Tensor
    current: tf.Tensor
    matched: tf.Tensor


def begin(ids: tf.Tensor, n: int) -> TermState:
    """Returns the state of empty hypotheses."""
    rows, terms = tf.shape(ids)[0], tf.shape(ids)[1]
    met = tf.equal(ids[:, None, :, 0], 0)
    return TermState(
        met=tf.tile(met, [1, n, 1]),
        current=tf.fill([rows, n], terms),
        matched=tf.zeros([rows, n], tf.int32),
    )


def count_tokens(ids: tf.Tensor) -> tf.Tensor:
    """Returns the number of tokens of each term: int32 (rows, terms)."""
    return tf.math.count_nonzero(ids, axis=2, dtype=tf.int32)


def drop_long_terms(ids: tf.Tensor, limits: tf.Tensor) -> tf.Tensor:
    """Removes the longest terms until the length limits leave room for the others.

    Args:
        ids: `Terms.ids`.
        limits: int32 (batch,), maximum number of tokens of each output, EOS included.

    Returns:
        Ids of the same shape; removed terms are all 0.
    """
    lengths = count_tokens(ids)
    order = tf.argsort(lengths, axis=1, stable=True)
    totals = tf.cumsum(tf.gather(lengths, order, batch_dims=1), axis=1)
    fits = tf.gather(totals, tf.argsort(order, axis=1), batch_dims=1) < limits[:, None]
    return tf.where(fits[:, :, None], ids, 0)


def find_met_terms(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns whether each term is met if the last word is complete.

    The result is bool (rows, n, terms).
    """
    complete = tf.equal(state.matched[:, :, None], count_tokens(ids)[:, None])
    return state.met | (_is_current(state, ids) & complete)


def count_matched_tokens(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns the number of term tokens in each hypothesis: int32 (rows, n)."""
    of_met = tf.where(state.met, count_tokens(ids)[:, None], 0)
    return tf.reduce_sum(of_met, axis=2) + state.matched


def next_tokens(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns the next token of each term: int32 (rows, n, terms).

    For the current term it is the token after those already matched, for other terms
    the first token. It is 0 for complete terms.
    """
    matched = tf.where(_is_current(state, ids), state.matched[:, :, None], 0)
    # A complete term of maximum length reads the added column of zeros.
    padded = tf.pad(ids, [[0, 0], [0, 0], [0, 1]])
    n = tf.shape(matched)[1]
    tokens = tf.gather(tf.tile(padded[:, None], [1, n, 1, 1]), matched, batch_dims=3)
    return tf.where(state.met, 0, tokens)


def advance(
    state: TermState, terms: Terms, last: tf.Tensor, tokens: tf.Tensor
) -> TermState:
    """Returns the state after one more token.

    Args:
        state: State before the token.
        terms: Terms of the sentences.
        last: int32 (rows, n), the previous token; 0 at the beginning.
        tokens: int32 (rows, n), the added token.
    """
    joined = tf.gather(terms.joins_next, last) | tf.gather(terms.joins_last, tokens)
    met = tf.where(joined[:, :, None], state.met, find_met_terms(state, terms.ids))
    matching = tf.equal(next_tokens(state, terms.ids), tokens[:, :, None])
    matching &= ~met & tf.not_equal(tokens, 0)[:, :, None]
    matching &= _is_current(state, terms.ids) & (state.matched > 0)[:, :, None]
    continues = tf.reduce_any(matching, axis=2)
    is_first = tf.equal(terms.ids[:, None, :, 0], tokens[:, :, None])
    starts = is_first & ~met & ~joined[:, :, None]
    index = tf.argmax(tf.cast(starts, tf.int32), axis=2, output_type=tf.int32)
    starts_any = tf.reduce_any(starts, axis=2)
    started = tf.where(starts_any, index, tf.shape(terms.ids)[1])
    return TermState(
        met=met,
        current=tf.where(continues, state.current, started),
        matched=tf.where(continues, state.matched + 1, tf.cast(starts_any, tf.int32)),
    )


def _is_current(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns which term is at the end of each hypothesis: bool (rows, n, terms)."""
    return tf.equal(state.current[:, :, None], tf.range(tf.shape(ids)[1]))
