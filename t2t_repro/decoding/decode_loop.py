"""Decodes a batch of sentences, which leave the batch when they are done.

A `Method` defines the step: a beam search algorithm, or sampling.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.decoder import PAD_ID, State, StepwiseDecoder

NO_HYPOTHESIS = -1e7
"""Score of a missing hypothesis; finite, so that JSON can represent it."""

Rows: TypeAlias = Any
"""A nested structure of tensors (rows, ...), one row for each sentence in the batch."""


class BeamSearchResult(NamedTuple):
    """The hypotheses of each sentence: best first, or in sampling order.

    Attributes:
        ids: int32 (batch, beam, length), ending in EOS unless cut at the limit, padded
            with PAD.
        scores: float32 (batch, beam). In beam search, log probability / length penalty;
            the first `nbest` hypotheses are final, and a longer search might replace
            the others. In sampling, the log probability. A missing hypothesis has the
            score -1e7 and only PAD ids.
    """

    ids: tf.Tensor
    scores: tf.Tensor


class Progress(NamedTuple):
    """The state of the sentences still in the batch, which changes with each step.

    Attributes:
        length: int32 (), tokens generated so far.
        searching: int32 (), number of sentences that are not done.
        sentences: State of the method.
        state: State of the decoder.
    """

    length: tf.Tensor
    searching: tf.Tensor
    sentences: Rows
    state: State


class Method(Protocol):
    """Interface of search algorithms; tensors in `inputs` have a row per sentence."""

    def start(self, state: State, inputs: Rows, width: int | tf.Tensor) -> Progress:
        """Returns the empty hypotheses, which are the result if the limit is 0.

        Args:
            state: State of the decoder before the first step.
            inputs: Inputs of each sentence.
            width: Maximum length of the hypotheses.
        """
        ...

    def step(
        self, decoder: StepwiseDecoder, progress: Progress, inputs: Rows
    ) -> Progress:
        """Adds one token to every hypothesis; done sentences do not change."""
        ...

    def is_open(self, sentences: Rows) -> tf.Tensor:
        """Returns which sentences are not done: bool (rows,)."""
        ...

    def results(self, sentences: Rows) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids, int32 (rows, beam, width), and scores, float32 (rows, beam).

        A missing hypothesis has the score -inf.
        """
        ...


class Search(NamedTuple):
    """A search for a batch of sentences.

    Attributes:
        method: Defines the step.
        inputs: Inputs of each sentence; they do not change.
        limits: int32 (batch,), the maximum number of tokens, EOS included.
    """

    method: Method
    inputs: Rows
    limits: tf.Tensor


class _Batch(NamedTuple):
    """The sentences still in the batch, and the results of all sentences.

    Attributes:
        progress: Progress of the sentences still in the batch.
        inputs: Inputs of the same sentences.
        places: int32 (rows,), the indices of these sentences among all sentences.
        ids: int32 (batch, beam, width), the results of all sentences.
        scores: float32 (batch, beam), their scores.
    """

    progress: Progress
    inputs: Rows
    places: tf.Tensor
    ids: tf.Tensor
    scores: tf.Tensor


def decode_batch(
    search: Search,
    decoder: StepwiseDecoder,
    state: State,
    compact_at: float | None = 0.25,
    width: int | None = None,
) -> BeamSearchResult:
    """Runs the steps of a search until every sentence is done.

    Args:
        search: From `beam_search` or `sampling_search`.
        decoder: Computes the logits of the next tokens.
        state: State of the decoder before the first step, with the search's number of
            hypotheses per sentence.
        compact_at: Fraction of the batch that must be done before these sentences are
            removed. None keeps them: XLA and some decoders need a constant batch size.
        width: Static length of the result, at least that of any hypothesis, for XLA;
            None: the number of steps taken.
    """
    method, inputs, limits = search
    columns = width
    if columns is None:
        columns = tf.reduce_max(tf.concat([limits, [0]], axis=0))
    progress = method.start(state, inputs, columns)

    def phase(batch: _Batch) -> tuple[_Batch]:
        """Runs steps until enough sentences are done to compact the batch."""
        stop_at = 0
        if compact_at is not None:
            rows = tf.shape(batch.places)[0]
            leaving = tf.math.ceil(compact_at * tf.cast(rows, tf.float32))
            leaving = tf.clip_by_value(tf.cast(leaving, tf.int32), 1, rows)
            stop_at = rows - leaving
        (progress,) = tf.while_loop(
            lambda progress: progress.searching > stop_at,
            lambda progress: (method.step(decoder, progress, batch.inputs),),
            (batch.progress,),
            shape_invariants=(_shapes(batch.progress),),
        )
        batch = batch._replace(progress=progress)
        return (batch if compact_at is None else _compact(method, decoder, batch),)

    # Sentences with limit 0 are done before the first step.
    ids, scores = method.results(progress.sentences)
    batch = _Batch(progress, inputs, tf.range(tf.shape(scores)[0]), ids, scores)
    if compact_at is None:
        (batch,) = phase(batch)
        ids, scores = method.results(batch.progress.sentences)
    else:
        (batch,) = tf.while_loop(
            lambda batch: batch.progress.searching > 0,
            phase,
            (batch,),
            shape_invariants=(
                _Batch(
                    progress=_shapes(progress),
                    inputs=_any_rows(inputs),
                    places=tf.TensorShape([None]),
                    ids=ids.shape,
                    scores=scores.shape,
                ),
            ),
        )
        ids, scores = batch.ids, batch.scores
    if width is None:
        ids = ids[:, :, : batch.progress.length]
    exists = scores > NEVER
    return BeamSearchResult(
        ids=tf.where(exists[:, :, None], ids, PAD_ID),
        scores=tf.where(exists, scores, NO_HYPOTHESIS),
    )


def _compact(method: Method, decoder: StepwiseDecoder, batch: _Batch) -> _Batch:
    """Writes the results, and removes the sentences that are done."""
    progress = batch.progress
    # Results of sentences that are not done are overwritten later.
    indices = batch.places[:, None]
    ids, scores = method.results(progress.sentences)
    keep = tf.cast(tf.where(method.is_open(progress.sentences))[:, 0], tf.int32)
    return _Batch(
        progress=progress._replace(
            sentences=_gather(progress.sentences, keep),
            state=decoder.select_sentences(progress.state, keep),
        ),
        inputs=_gather(batch.inputs, keep),
        places=tf.gather(batch.places, keep),
        ids=tf.tensor_scatter_nd_update(batch.ids, indices, ids),
        scores=tf.tensor_scatter_nd_update(batch.scores, indices, scores),
    )


def _gather(rows: Rows, keep: tf.Tensor) -> Rows:
    """Keeps the rows with the indices `keep`, int32 (kept,)."""
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, keep), rows)


def _shapes(progress: Progress) -> Progress:
    """Returns the shapes, with None for sizes that steps or compaction may change."""
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
