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
        sentences: State of the method.
        state: State of the decoder.
    """

    length: tf.Tensor
    sentences: Rows
    state: State


class Method(Protocol):
    """Interface of search algorithms; tensors in `inputs` have a row per sentence."""

    def start(self, inputs: Rows, width: int | tf.Tensor) -> Rows:
        """Returns the empty hypotheses, which are the result if the limit is 0.

        Args:
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
    progress = Progress(tf.constant(0), method.start(inputs, columns), state)

    def run(progress: Progress, inputs: Rows, most_open: tf.Tensor | int) -> Progress:
        """Runs steps until at most `most_open` sentences are not done."""

        def is_running(progress: Progress) -> tf.Tensor:
            is_open = method.is_open(progress.sentences)
            return tf.math.count_nonzero(is_open, dtype=tf.int32) > most_open

        (progress,) = tf.while_loop(
            is_running,
            lambda progress: (method.step(decoder, progress, inputs),),
            (progress,),
            shape_invariants=(_shapes(progress),),
        )
        return progress

    if compact_at is None:
        progress = run(progress, inputs, 0)
        ids, scores = method.results(progress.sentences)
    else:

        def phase(batch: _Batch) -> tuple[_Batch]:
            """Runs steps until enough sentences are done, and removes these."""
            rows = tf.shape(batch.places)[0]
            leaving = tf.math.ceil(compact_at * tf.cast(rows, tf.float32))
            leaving = tf.clip_by_value(tf.cast(leaving, tf.int32), 1, rows)
            progress = run(batch.progress, batch.inputs, rows - leaving)
            return (_compact(method, decoder, batch._replace(progress=progress)),)

        # Sentences with limit 0 are done before the first step.
        ids, scores = method.results(progress.sentences)
        batch = _Batch(progress, inputs, tf.range(tf.shape(scores)[0]), ids, scores)
        shapes = _Batch(
            progress=_shapes(progress),
            inputs=_any_rows(inputs),
            places=tf.TensorShape([None]),
            ids=ids.shape,
            scores=scores.shape,
        )
        (batch,) = tf.while_loop(
            lambda batch: tf.reduce_any(method.is_open(batch.progress.sentences)),
            phase,
            (batch,),
            shape_invariants=(shapes,),
        )
        progress, _, _, ids, scores = batch
    if width is None:
        ids = ids[:, :, : progress.length]
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
