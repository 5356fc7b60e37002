"""Progress of each hypothesis with its terms (lexical constraints).

A term is a sequence of tokens that must appear in the output as whole words. A
hypothesis that has begun one may leave it again; then it has to begin anew.
"""

from typing import NamedTuple

import tensorflow as tf


class Terms(NamedTuple):
    """The terms that must appear in the outputs of a batch.

    Attributes:
        ids: int32 (batch, terms, length), each term 0-padded; all 0 for none.
        joins_next: bool (vocab,), tokens that end inside of a word.
        joins_last: bool (vocab,), tokens that begin inside of a word.
    """

    ids: tf.Tensor
    joins_next: tf.Tensor
    joins_last: tf.Tensor


class TermState(NamedTuple):
    """Progress of hypotheses with their terms; `n` of a sentence, `terms` for each.

    Attributes:
        met: bool (rows, n, terms), terms in the hypothesis; True for padding.
        current: int32 (rows, n), the number of the term that it ends in; terms: none.
        place: int32 (rows, n), how many tokens of that it has.
    """

    met: tf.Tensor
    current: tf.Tensor
    place: tf.Tensor


def begin(ids: tf.Tensor, n: int) -> TermState:
    """Returns the state of empty hypotheses."""
    rows, terms = tf.shape(ids)[0], tf.shape(ids)[1]
    met = tf.equal(ids[:, None, :, 0], 0)
    return TermState(
        met=tf.tile(met, [1, n, 1]),
        current=tf.fill([rows, n], terms),
        place=tf.zeros([rows, n], tf.int32),
    )


def lengths_of(ids: tf.Tensor) -> tf.Tensor:
    """Returns the tokens of each term: int32 (rows, terms)."""
    return tf.math.count_nonzero(ids, axis=2, dtype=tf.int32)


def met_if_it_ended(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns the terms that are met if nothing joins the last token's word."""
    terms = tf.range(tf.shape(ids)[1])
    is_current = tf.equal(state.current[:, :, None], terms)
    whole = tf.equal(state.place[:, :, None], lengths_of(ids)[:, None])
    return state.met | (is_current & whole)


def covered(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns how many tokens of terms hypotheses have: int32 (rows, n)."""
    have = tf.where(state.met, lengths_of(ids)[:, None], 0)
    return tf.reduce_sum(have, axis=2) + state.place


def next_tokens(state: TermState, ids: tf.Tensor) -> tf.Tensor:
    """Returns what brings each term forward: int32 (rows, n, terms), 0: nothing does.

    It is the next token of the term that a hypothesis is in, the first of the others.
    """
    terms = tf.range(tf.shape(ids)[1])
    is_current = tf.equal(state.current[:, :, None], terms)
    place = tf.where(is_current, state.place[:, :, None], 0)
    # One more column, for a complete term.
    padded = tf.pad(ids, [[0, 0], [0, 0], [0, 1]])
    n = tf.shape(place)[1]
    found = tf.gather(tf.tile(padded[:, None], [1, n, 1, 1]), place, batch_dims=3)
    return tf.where(state.met, 0, found)


def advance(
    state: TermState, terms: Terms, last: tf.Tensor, tokens: tf.Tensor
) -> TermState:
    """Returns the state after one more token.

    Args:
        state: before it.
        terms: of these sentences.
        last: int32 (rows, n), the last tokens before it; 0 at the beginning.
        tokens: int32 (rows, n), the tokens that were added.
    """
    numbers = tf.range(tf.shape(terms.ids)[1])
    is_current = tf.equal(state.current[:, :, None], numbers)
    joined = tf.gather(terms.joins_next, last) | tf.gather(terms.joins_last, tokens)
    met = tf.where(joined[:, :, None], state.met, met_if_it_ended(state, terms.ids))
    matching = tf.equal(next_tokens(state, terms.ids), tokens[:, :, None])
    matching &= ~met & tf.not_equal(tokens, 0)[:, :, None]
    goes_on = tf.reduce_any(matching & is_current & (state.place > 0)[:, :, None], 2)
    firsts = tf.equal(terms.ids[:, None, :, 0], tokens[:, :, None])
    starts = firsts & ~met & ~joined[:, :, None]
    first = tf.argmax(tf.cast(starts, tf.int32), axis=2, output_type=tf.int32)
    starts_one = tf.reduce_any(starts, axis=2)
    begun = tf.where(starts_one, first, tf.shape(terms.ids)[1])
    return TermState(
        met=met,
        current=tf.where(goes_on, state.current, begun),
        place=tf.where(goes_on, state.place + 1, tf.cast(starts_one, tf.int32)),
    )
