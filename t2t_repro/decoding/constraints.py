"""Decoding constraints: each one masks tokens at the next position.

A forbidden token keeps its probability, so that scores are still the log probabilities
of the model.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.decoder import EOS_ID, PAD_ID


class SentenceConstraints(NamedTuple):
    """The constraints that differ from sentence to sentence.

    Attributes:
        min_lengths: int32 (rows,), minimum number of tokens, EOS included.
        prefixes: int32 (rows, columns), padded with PAD; the last column is all PAD.
    """

    min_lengths: tf.Tensor
    prefixes: tf.Tensor


@dataclass(frozen=True, eq=False)
class Constraints:
    """The constraints on the hypotheses of a batch, except for their maximum length.

    A prefix takes precedence over all other constraints.

    Attributes:
        min_lengths: int32 (batch,) or (), minimum number of tokens, EOS included; the
            sentence's limit takes precedence. None: no minimum.
        prefixes: int32 (batch, prefix), padded with PAD: the first tokens of every
            hypothesis, which count in its score. A prefix that ends in EOS is the
            result. A prefix longer than the limit is cut. If an id is outside of the
            vocabulary, there is no hypothesis. None: no prefixes.
        no_repeat_ngram: Length of the n-grams that must not occur twice in a
            hypothesis, prefix included (Paulus et al. 2017, arXiv:1705.04304, section
            2.5, use 3); 0 allows repetition. A hypothesis with no allowed continuation
            is dropped.
        never: Tokens that are never produced, except in a prefix.
    """

    min_lengths: tf.Tensor | None = None
    prefixes: tf.Tensor | None = None
    no_repeat_ngram: int = 0
    never: tuple[int, ...] = ()

    def sentence_constraints(self, batch_size: int | tf.Tensor) -> SentenceConstraints:
        """Returns the constraints of each sentence; None becomes 0 or PAD."""
        min_lengths = 0 if self.min_lengths is None else self.min_lengths
        min_lengths = tf.broadcast_to(tf.cast(min_lengths, tf.int32), [batch_size])
        prefixes = tf.fill([batch_size, 1], PAD_ID)
        if self.prefixes is not None:
            prefixes = tf.concat([tf.cast(self.prefixes, tf.int32), prefixes], axis=1)
        return SentenceConstraints(min_lengths, prefixes)

    @property
    def only_tokens(self) -> bool:
        """Whether only a few tokens are forbidden, the same ones for all hypotheses."""
        return self.prefixes is None and not self.no_repeat_ngram

    def forbidden_ids(
        self, sentence_constraints: SentenceConstraints, length: tf.Tensor
    ) -> tf.Tensor:
        """Returns the forbidden next tokens, if `only_tokens` is true.

        They are int32 (rows, 2 or more): PAD, `never`, and EOS if ``length + 1`` tokens
        are too few (`length`: int32 ()).
        """
        early = length + 1 < sentence_constraints.min_lengths
        eos = tf.where(early, EOS_ID, PAD_ID)
        others = [tf.fill(tf.shape(eos), other) for other in self.never]
        return tf.stack([tf.fill(tf.shape(eos), PAD_ID), eos, *others], axis=1)

    def forbidden(
        self,
        sentence_constraints: SentenceConstraints,
        hypotheses: tf.Tensor,
        length: tf.Tensor,
        logits: tf.Tensor,
    ) -> tf.Tensor:
        """Marks the forbidden next tokens, PAD included.

        Args:
            sentence_constraints: Constraints of the sentences.
            hypotheses: int32 (rows, beam, width), unfinished.
            length: int32 (), their length.
            logits: float (rows, beam, vocab), of which only the shape is read.

        Returns:
            bool (rows, beam, vocab), or (rows, 1, vocab) if they are the same for all
            hypotheses of a sentence.
        """
        vocab = logits.shape[2] or tf.shape(logits)[2]
        tokens = tf.range(vocab)
        early = (length + 1 < sentence_constraints.min_lengths)[:, None, None]
        forbidden = tf.equal(tokens, PAD_ID) | (early & tf.equal(tokens, EOS_ID))
        for other in self.never:
            forbidden |= tf.equal(tokens, other)
        if self.no_repeat_ngram:
            ends = _find_repeats(hypotheses, length, self.no_repeat_ngram)
            forbidden |= _mark_tokens(ends, vocab)
        # After the prefixes, the last column is read, which is PAD.
        column = tf.minimum(length, tf.shape(sentence_constraints.prefixes)[1] - 1)
        prescribed = tf.gather(sentence_constraints.prefixes, column, axis=1)
        prescribed = prescribed[:, None, None]
        free = tf.equal(prescribed, PAD_ID)
        return tf.where(free, forbidden, tf.not_equal(tokens, prescribed))


def _find_repeats(hypotheses: tf.Tensor, length: tf.Tensor, n: int) -> tf.Tensor:
    """Returns the tokens that would repeat an n-gram of hypotheses (rows, beam, width).

    They are int32 (rows, beam, width). Position s has the last token of the n-gram that
    starts there, if the hypothesis ends in its first n - 1 tokens, else PAD.
    """
    starts = tf.range(tf.shape(hypotheses)[2])
    # Shapes do not depend on `length`, as XLA requires. With fewer than n - 1 tokens,
    # no start is valid, and the values do not matter.
    recent = tf.maximum(length - n + 1 + tf.range(n - 1), 0)
    recent = tf.gather(hypotheses, recent, axis=2)
    repeats = starts + n <= length
    for i in range(n - 1):
        shifted = tf.roll(hypotheses, -i, axis=2)
        repeats &= tf.equal(shifted, recent[:, :, i : i + 1])
    return tf.where(repeats, tf.roll(hypotheses, 1 - n, axis=2), PAD_ID)


def _mark_tokens(ids: tf.Tensor, vocab: int | tf.Tensor) -> tf.Tensor:
    """Marks the tokens that occur: (rows, beam, n) -> bool (rows, beam, vocab)."""
    rows, beam, n = tf.unstack(tf.shape(ids))
    # (rows, beam, n) -> (rows * beam * n, 1), indices into (rows * beam * vocab,)
    table = tf.range(rows * beam)[:, None] * vocab + tf.reshape(ids, [-1, n])
    indices = tf.reshape(table, [-1, 1])
    # Every device can scatter float32, but not bool.
    counts = tf.scatter_nd(
        indices, tf.ones_like(indices[:, 0], tf.float32), [rows * beam * vocab]
    )
    return tf.reshape(counts > 0, [rows, beam, vocab])
