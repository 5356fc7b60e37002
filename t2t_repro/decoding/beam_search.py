"""Beam search as TensorFlow graph code (paper section 6.1, Wu et al. 2016).

The algorithm is tensor2tensor's (utils/beam_search.py:beam_search): each step takes
the 2 * beam best continuations of a sentence; the best `beam` of those without EOS
stay alive, those with EOS compete for `beam` finished places by normalised score.

# T2T: five things differ, so that a translation depends on its sentence alone:
each sentence has its own limit; its search ends by its own stop rule, and nothing
changes after that; an unfinished hypothesis at the limit is scored as a finished one
(tensor2tensor returns its plain log probability); PAD is never produced; with a beam
of 1 only the single best continuation counts, which is greedy search.
`tensor2tensor_rules=True` restores the first four.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.beam_step import Beams, Rules, start, step
from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.decoder import Decoder, State

NO_HYPOTHESIS = -1e7
"""The score of a place that no hypothesis fills; finite, so that JSON can hold it."""


class BeamSearchResult(NamedTuple):
    """The hypotheses of each sentence, best first.

    Attributes:
        ids: int32 (batch, beam, length), ending in EOS unless cut at the limit, padded
            with PAD.
        scores: float32 (batch, beam), log probability / length penalty. The first
            `nbest` are final, the others the best that were met until then. A place
            that no hypothesis fills has the score -1e7 and PAD ids only.
    """

    ids: tf.Tensor
    scores: tf.Tensor


class _Batch(NamedTuple):
    """The sentences still searched, and the results of all.

    Attributes:
        beams: of the sentences still in the batch.
        limits: int32 (rows,), their limits.
        sentences: int32 (rows,), their places among all.
        ids: int32 (batch, beam, width), the results.
        scores: float32 (batch, beam), the results.
    """

    beams: Beams
    limits: tf.Tensor
    sentences: tf.Tensor
    ids: tf.Tensor
    scores: tf.Tensor


def beam_search(
    decoder: Decoder,
    state: State,
    *,
    batch_size: int | tf.Tensor,
    beam_size: int,
    alpha: float,
    max_lengths: tf.Tensor,
    nbest: int = 1,
    start_id: int = 0,
    eos_id: int = 1,
    pad_id: int = 0,
    leave_at: float | None = 0.25,
    width: int | None = None,
    tensor2tensor_rules: bool = False,
) -> BeamSearchResult:
    """Searches the best translations of a batch of sentences.

    Args:
        decoder: scores the next symbols.
        state: the decoder's state before the first step.
        batch_size: sentences.
        beam_size: hypotheses per sentence; 1 is greedy search.
        alpha: of the length penalty, at least 0.
        max_lengths: int32 (batch,), the most symbols to generate for each sentence,
            EOS counted.
        nbest: the search goes on until this many hypotheses are final.
        start_id: the symbol before the first.
        eos_id: the symbol that ends a translation.
        pad_id: what fills the result up; never produced.
        leave_at: finished sentences leave the batch when they are this share of it;
            None keeps them, for a decoder or a compiler (XLA) that needs one size.
        width: a static length for the result, which also bounds the limits. XLA needs
            it; without it the length is the number of steps taken.
        tensor2tensor_rules: one limit (the largest) and one stop rule for the whole
            batch, plain log probabilities for unfinished hypotheses, PAD allowed.

    Returns:
        The hypotheses of each sentence, best first.

    Raises:
        ValueError: if beam_size, nbest or alpha is out of range.
    """
    rules = Rules(beam_size, alpha, nbest, eos_id, pad_id, tensor2tensor_rules)
    limits = tf.broadcast_to(tf.cast(max_lengths, tf.int32), [batch_size])
    if width is None:
        columns = tf.reduce_max(tf.concat([limits, [0]], axis=0))
    else:
        columns = width
        limits = tf.minimum(limits, width)
    if tensor2tensor_rules:
        limits = tf.broadcast_to(columns, [batch_size])
    beams = start(state, limits, columns, start_id, rules)
    if leave_at is None:
        beams = _search(decoder, beams, limits, tf.constant(0), rules)
        ids, scores = beams.hypotheses[:, beam_size:], beams.scores
    else:
        batch = _search_and_leave(decoder, beams, limits, leave_at, rules)
        beams, ids, scores = batch.beams, batch.ids, batch.scores
    if width is None:
        ids = ids[:, :, : beams.length]
    exists = scores > NEVER
    return BeamSearchResult(
        ids=tf.where(exists[:, :, None], ids, pad_id),
        scores=tf.where(exists, scores, NO_HYPOTHESIS),
    )


def _search(
    decoder: Decoder, beams: Beams, limits: tf.Tensor, stop_at: tf.Tensor, rules: Rules
) -> Beams:
    """Steps until at most `stop_at` (int32 ()) sentences are still searched."""
    (beams,) = tf.while_loop(
        lambda beams: beams.searching > stop_at,
        lambda beams: (step(decoder, beams, limits, rules),),
        (beams,),
        shape_invariants=(_shapes(beams),),
    )
    return beams


def _search_and_leave(
    decoder: Decoder, beams: Beams, limits: tf.Tensor, leave_at: float, rules: Rules
) -> _Batch:
    """Searches in phases; after each, the finished sentences leave the batch."""

    def phase(batch: _Batch) -> tuple[_Batch]:
        rows = tf.shape(batch.limits)[0]
        leaving = tf.cast(tf.math.ceil(leave_at * tf.cast(rows, tf.float32)), tf.int32)
        stop_at = rows - tf.clip_by_value(leaving, 1, rows)
        beams = _search(decoder, batch.beams, batch.limits, stop_at, rules)
        return (_leave(decoder, batch._replace(beams=beams), rules.beam_size),)

    everyone = tf.range(tf.shape(limits)[0])
    # Sentences that start with nothing to do have their result already.
    batch = _Batch(
        beams, limits, everyone, beams.hypotheses[:, rules.beam_size :], beams.scores
    )
    (batch,) = tf.while_loop(
        lambda batch: batch.beams.searching > 0,
        phase,
        (batch,),
        shape_invariants=(
            _Batch(
                beams=_shapes(beams),
                limits=tf.TensorShape([None]),
                sentences=tf.TensorShape([None]),
                ids=batch.ids.shape,
                scores=batch.scores.shape,
            ),
        ),
    )
    return batch


def _leave(decoder: Decoder, batch: _Batch, beam: int) -> _Batch:
    """Writes down the results, and keeps the sentences that are still searched."""
    beams = batch.beams
    # The results of those that stay are written too, and overwritten later.
    place = batch.sentences[:, None]
    finished = beams.hypotheses[:, beam:]
    open_ = tf.not_equal(beams.log_probs[:, 0], NEVER)
    keep = tf.cast(tf.where(open_)[:, 0], tf.int32)
    return _Batch(
        beams=Beams(
            length=beams.length,
            searching=beams.searching,
            last_ids=tf.gather(beams.last_ids, keep),
            log_probs=tf.gather(beams.log_probs, keep),
            scores=tf.gather(beams.scores, keep),
            hypotheses=tf.gather(beams.hypotheses, keep),
            state=decoder.select_sentences(beams.state, keep),
        ),
        limits=tf.gather(batch.limits, keep),
        sentences=tf.gather(batch.sentences, keep),
        ids=tf.tensor_scatter_nd_update(batch.ids, place, finished),
        scores=tf.tensor_scatter_nd_update(batch.scores, place, beams.scores),
    )


def _shapes(beams: Beams) -> Beams:
    """Returns what stays known of the shapes while steps pass and sentences leave."""
    beam = beams.scores.shape[1]
    rank_only = tf.nest.map_structure(
        lambda tensor: tf.TensorShape([None] * tensor.shape.rank), beams.state
    )
    return Beams(
        length=tf.TensorShape([]),
        searching=tf.TensorShape([]),
        last_ids=tf.TensorShape([None, beam]),
        log_probs=tf.TensorShape([None, beam]),
        scores=tf.TensorShape([None, beam]),
        hypotheses=tf.TensorShape([None, 2 * beam, beams.hypotheses.shape[2]]),
        state=rank_only,
    )
