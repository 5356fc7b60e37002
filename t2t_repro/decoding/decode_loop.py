"""Runs a batch of sentences until all are done; the finished leave it on the way.

A `Method` says what happens at each step: beam search, or sampling.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.decoder import State, StepwiseDecoder

NO_HYPOTHESIS = -1e7
"""The score of a place without a hypothesis; finite, so that JSON can hold it."""

Rows: TypeAlias = Any
"""A nested structure of tensors (rows, ...), one row for each sentence in the batch."""


class BeamSearchResult(NamedTuple):
    """The hypotheses of each sentence: best first, or as they were drawn.

    Attributes:
        ids: int32 (batch, beam, length), ending in EOS unless cut at the limit, padded
            with PAD.
        scores: float32 (batch, beam). In beam search log probability / length penalty;
            the first `nbest` are final, the others the best met until then. In
            sampling the log probability. A place without a hypothesis has the score
            -1e7 and PAD ids only.
    """

    ids: tf.Tensor
    scores: tf.Tensor


class Progress(NamedTuple):
    """What changes with each step, for the sentences still in the batch.

    Attributes:
        length: int32 (), symbols generated so far.
        searching: int32 (), sentences that are not done.
        sentences: the method's own.
        state: the decoder's.
    """

    length: tf.Tensor
    searching: tf.Tensor
    sentences: Rows
    state: State


class Method(Protocol):
    """How hypotheses grow; `asked` is what the caller wants of each sentence."""

    @property
    def decoder(self) -> StepwiseDecoder:
        """Scores the next symbols."""
        ...

    def step(self, progress: Progress, asked: Rows) -> Progress:
        """Adds one symbol to every hypothesis; done sentences do not change."""
        ...

    def is_open(self, sentences: Rows) -> tf.Tensor:
        """Which sentences are not done: bool (rows,)."""
        ...

    def results(self, sentences: Rows) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids, int32 (rows, beam, width), and scores, float32 (rows, beam)."""
        ...


class _Batch(NamedTuple):
    """The sentences still in the batch, and the results of all.

    Attributes:
        progress: of the sentences still in the batch.
        asked: of the same sentences.
        places: int32 (rows,), their places among all.
        ids: int32 (batch, beam, width), the results.
        scores: float32 (batch, beam), the results.
    """

    progress: Progress
    asked: Rows
    places: tf.Tensor
    ids: tf.Tensor
    scores: tf.Tensor


def decode_batch(
    method: Method, progress: Progress, asked: Rows, compact_at: float | None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Steps until every sentence is done.

    Args:
        method: what a step does.
        progress: before the first step.
        asked: of each sentence; does not change.
        compact_at: finished sentences leave the batch when they are this share of it;
            None keeps them.

    Returns:
        ids, int32 (batch, beam, width); scores, float32 (batch, beam), -inf where there
        is no hypothesis; and the number of steps, int32 ().
    """
    if compact_at is None:
        progress = _step_until(method, progress, asked, tf.constant(0))
        ids, scores = method.results(progress.sentences)
        return ids, scores, progress.length
    batch = _run_and_leave(method, progress, asked, compact_at)
    return batch.ids, batch.scores, batch.progress.length


def as_result(ids: tf.Tensor, scores: tf.Tensor, pad_id: int) -> BeamSearchResult:
    """Clears the places without a hypothesis, whose scores are -inf."""
    exists = scores > NEVER
    return BeamSearchResult(
        ids=tf.where(exists[:, :, None], ids, pad_id),
        scores=tf.where(exists, scores, NO_HYPOTHESIS),
    )


def _step_until(
    method: Method, progress: Progress, asked: Rows, stop_at: tf.Tensor
) -> Progress:
    """Steps until at most `stop_at` (int32 ()) sentences are not done."""
    (progress,) = tf.while_loop(
        lambda progress: progress.searching > stop_at,
        lambda progress: (method.step(progress, asked),),
        (progress,),
        shape_invariants=(_shapes(progress),),
    )
    return progress


def _run_and_leave(
    method: Method, progress: Progress, asked: Rows, compact_at: float
) -> _Batch:
    """Steps in phases; after each, the finished sentences leave the batch."""

    def phase(batch: _Batch) -> tuple[_Batch]:
        rows = tf.shape(batch.places)[0]
        leaving = tf.cast(
            tf.math.ceil(compact_at * tf.cast(rows, tf.float32)), tf.int32
        )
        stop_at = rows - tf.clip_by_value(leaving, 1, rows)
        progress = _step_until(method, batch.progress, batch.asked, stop_at)
        return (_leave(method, batch._replace(progress=progress)),)

    # Sentences that start with nothing to do have their result already.
    ids, scores = method.results(progress.sentences)
    everyone = tf.range(tf.shape(scores)[0])
    batch = _Batch(progress, asked, everyone, ids, scores)
    (batch,) = tf.while_loop(
        lambda batch: batch.progress.searching > 0,
        phase,
        (batch,),
        shape_invariants=(
            _Batch(
                progress=_shapes(progress),
                asked=_any_rows(asked),
                places=tf.TensorShape([None]),
                ids=ids.shape,
                scores=scores.shape,
            ),
        ),
    )
    return batch


def _leave(method: Method, batch: _Batch) -> _Batch:
    """Writes down the results, and keeps the sentences that are not done."""
    progress = batch.progress
    # The results of those that stay are written too, and overwritten later.
    place = batch.places[:, None]
    ids, scores = method.results(progress.sentences)
    keep = tf.cast(tf.where(method.is_open(progress.sentences))[:, 0], tf.int32)
    return _Batch(
        progress=progress._replace(
            sentences=_gather(progress.sentences, keep),
            state=method.decoder.select_sentences(progress.state, keep),
        ),
        asked=_gather(batch.asked, keep),
        places=tf.gather(batch.places, keep),
        ids=tf.tensor_scatter_nd_update(batch.ids, place, ids),
        scores=tf.tensor_scatter_nd_update(batch.scores, place, scores),
    )


def _gather(rows: Rows, keep: tf.Tensor) -> Rows:
    """Keeps the rows of some sentences, int32 (kept,)."""
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), rows)


def _shapes(progress: Progress) -> Progress:
    """Returns what stays known of the shapes while steps pass and sentences leave."""
    return Progress(
        length=tf.TensorShape([]),
        searching=tf.TensorShape([]),
        sentences=_any_rows(progress.sentences),
        state=tf.nest.map_structure(
            lambda tensor: tf.TensorShape([None] * tensor.shape.rank), progress.state
        ),
    )


def _any_rows(rows: Rows) -> Rows:
    """Returns the shapes of tensors (rows, ...), with any number of rows."""
    return tf.nest.map_structure(
        lambda tensor: tf.TensorShape([None]).concatenate(tensor.shape[1:]), rows
    )
