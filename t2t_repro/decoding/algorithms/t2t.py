"""tensor2tensor's beam search (utils/beam_search.py:beam_search).

Each step ranks the 2 * beam best continuations of a sentence. The best `beam` of those
without EOS stay alive. Those with EOS compete by normalized score with the `beam`
finished hypotheses (paper section 6.1, Wu et al. 2016).

# T2T: five details differ, so that a translation depends only on its sentence:
each sentence has its own limit; its search ends by its own stop rule, and nothing
changes after that; an unfinished hypothesis at the limit is scored as a finished one
(tensor2tensor returns its plain log probability); PAD is never produced; with a beam
of 1 only the single best continuation counts, which is greedy search.
`BatchWideT2TSearch` restores the first four.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm, SentenceInputs
from t2t_repro.decoding.candidates import NEVER, Candidates, best_candidates
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, StepwiseDecoder
from t2t_repro.decoding.stopping import (
    SearchStatus,
    batch_done_tensor2tensor,
    sentences_done,
)


class Beams(NamedTuple):
    """The hypotheses of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, beam), the last tokens of the unfinished hypotheses.
        log_probs: float32 (rows, beam), of the unfinished hypotheses, best first; all
            -inf once the sentence's search is over, so that nothing changes any more.
        scores: float32 (rows, beam), of the finished hypotheses, best first; -inf for
            missing hypotheses.
        hypotheses: int32 (rows, 2 * beam, width), the unfinished, then the finished.
    """

    last_ids: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor
    hypotheses: tf.Tensor


class _Results(NamedTuple):
    """Hypotheses that compete for the result.

    Attributes:
        scores: float32 (rows, beam), -inf for missing hypotheses.
        sources: int32 (rows, beam), the index into `Beams.hypotheses` of the older
            result, or of the hypothesis that a new result continues.
        endings: int32 (rows, beam), the added token; PAD for older results.
    """

    scores: tf.Tensor
    sources: tf.Tensor
    endings: tf.Tensor


@dataclass(frozen=True)
class T2TSearch(SearchAlgorithm):
    """tensor2tensor's search, and the base class of Marian's and Transformers' search.

    Subclasses override `num_candidates`, `eligible`, `finishing`, `done`, and for
    hypotheses at the limit `force_end` or `cut_score`.
    """

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks.

        The number is 2 * beam, because up to `beam` of the best may end in EOS. Greedy
        search (beam 1) ranks only the best one, and ends if it is EOS.
        """
        return 1 if self.beam_size == 1 else 2 * self.beam_size

    def eligible(
        self, candidates: Candidates, ends: tf.Tensor, scores: tf.Tensor
    ) -> Candidates:
        """Excludes candidates by a log probability of -inf; by default none.

        Args:
            candidates: Candidates of this step.
            ends: bool (rows, candidates), whether they end in EOS.
            scores: float32 (rows, beam), of the finished hypotheses.
        """
        return candidates

    def finishing(
        self, ends: tf.Tensor, length: tf.Tensor, limits: tf.Tensor
    ) -> tf.Tensor:
        """Returns which candidates compete for the result: bool (rows, candidates).

        Args:
            ends: bool (rows, candidates), whether they end in EOS.
            length: int32 (), of the candidates.
            limits: int32 (rows,).
        """
        return ends

    def done(self, status: SearchStatus) -> tf.Tensor:
        """Returns which sentences are done: bool (rows,); see `sentences_done`."""
        length, limits, log_probs, _ = status
        if self.word_penalty:
            # A longer hypothesis may have a higher score, so the search ends only at
            # the limit or when no hypothesis can be continued.
            return (length >= limits) | tf.equal(log_probs[:, 0], NEVER)
        return sentences_done(status, self.penalty(limits), self.nbest)

    def force_end(
        self, logits: tf.Tensor, length: tf.Tensor, limits: tf.Tensor
    ) -> tf.Tensor:
        """Forces EOS in the logits at the limit; by default returns them unchanged."""
        return logits

    def cut_score(self, log_probs: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Computes the score of unfinished hypotheses at the limit."""
        return self.score(log_probs, length)

    def start(self, inputs: SentenceInputs, width: int | tf.Tensor) -> Beams:
        """Returns one empty hypothesis per sentence, the result if the limit is 0."""
        beam = self.beam_size
        rows = tf.shape(inputs.limits)[0]
        empty = tf.constant([[0.0] + [NEVER] * (beam - 1)])
        open_ = (inputs.limits > 0)[:, None]
        return Beams(
            last_ids=tf.fill([rows, beam], PAD_ID),
            log_probs=tf.where(open_, empty, NEVER),
            scores=tf.where(open_, NEVER, empty),
            hypotheses=tf.fill([rows, 2 * beam, width], PAD_ID),
        )

    def step(
        self, decoder: StepwiseDecoder, progress: Progress, inputs: SentenceInputs
    ) -> Progress:
        """Adds one token to every hypothesis."""
        beams, beam = progress.sentences, self.beam_size
        logits, state = decoder.step(beams.last_ids, progress.length, progress.state)
        logits = self.force_end(logits, progress.length + 1, inputs.limits)
        unfinished = beams.hypotheses[:, :beam]
        forbidden = self.forbidden(inputs, unfinished, progress.length, logits)
        candidates = best_candidates(
            logits, beams.log_probs, self.num_candidates, forbidden
        )
        ends = tf.equal(candidates.ids, EOS_ID)
        candidates = self.eligible(candidates, ends, beams.scores)
        alive = tf.math.top_k(tf.where(ends, NEVER, candidates.log_probs), beam)
        ends = self.finishing(ends, progress.length + 1, inputs.limits)
        progress = progress._replace(state=state)
        return self.advance(decoder, progress, inputs, candidates, alive, ends)

    def advance(
        self,
        decoder: StepwiseDecoder,
        progress: Progress,
        inputs: SentenceInputs,
        candidates: Candidates,
        alive: tuple[tf.Tensor, tf.Tensor],
        ends: tf.Tensor,
    ) -> Progress:
        """Continues the selected candidates, and finishes those that end.

        Args:
            decoder: The decoder.
            progress: Progress before the step, but with the decoder's state after it.
            inputs: Inputs of the sentences.
            candidates: Candidates of the step.
            alive: The candidates to continue, best first: log probabilities, float32
                (rows, beam), and indices, int32 (rows, beam).
            ends: bool (rows, candidates), which candidates compete for the result.
        """
        beams, length = progress.sentences, progress.length + 1
        log_probs, chosen = alive
        parents = tf.gather(candidates.parents, chosen, batch_dims=1)
        ids = tf.gather(candidates.ids, chosen, batch_dims=1)
        ended = tf.where(ends, self.score(candidates.log_probs, length), NEVER)
        finished = self._finish(beams.scores, candidates, ended)
        status = SearchStatus(length, inputs.limits, log_probs, finished.scores)
        done = self.done(status)[:, None]
        # If none has finished by the limit, the unfinished hypotheses are the result.
        cut = done & tf.equal(finished.scores[:, :1], NEVER)
        unfinished = _Results(self.cut_score(log_probs, length), parents, ids)
        both = zip(unfinished, finished, strict=True)
        finished = _Results(*(tf.where(cut, *each) for each in both))
        # (rows, 2 * beam, width): copies of the sources; one token is added below.
        hypotheses = tf.gather(
            beams.hypotheses,
            tf.concat([parents, finished.sources], axis=1),
            batch_dims=1,
        )
        added = tf.concat([ids, finished.endings], axis=1)[:, :, None]
        is_added = tf.equal(tf.range(tf.shape(hypotheses)[2]), progress.length)
        state = progress.state
        if self.beam_size > 1:
            state = decoder.select_beams(state, parents)
        sentences = Beams(
            last_ids=ids,
            log_probs=tf.where(done, NEVER, log_probs),
            scores=finished.scores,
            hypotheses=tf.where(is_added, added, hypotheses),
        )
        return Progress(length, sentences, state)

    def is_open(self, sentences: Beams) -> tf.Tensor:
        """Returns which sentences are not done: bool (rows,)."""
        return tf.not_equal(sentences.log_probs[:, 0], NEVER)

    def results(self, sentences: Beams) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the finished hypotheses and their scores."""
        return sentences.hypotheses[:, self.beam_size :], sentences.scores

    def _finish(
        self, scores: tf.Tensor, candidates: Candidates, ended: tf.Tensor
    ) -> _Results:
        """Returns the best of the older results and of the candidates that end.

        `ended`, float32 (rows, candidates), are the candidates' scores, -inf for those
        that do not end.
        """
        beam = self.beam_size
        scores, chosen = tf.math.top_k(tf.concat([scores, ended], axis=1), beam)
        old = tf.broadcast_to(tf.range(beam, 2 * beam), [tf.shape(scores)[0], beam])
        origin = tf.concat([old, candidates.parents], axis=1)
        added = tf.pad(candidates.ids, [[0, 0], [beam, 0]], constant_values=PAD_ID)
        sources, endings = (
            tf.gather(each, chosen, batch_dims=1) for each in (origin, added)
        )
        return _Results(scores, sources, endings)


@dataclass(frozen=True)
class BatchWideT2TSearch(T2TSearch):
    """tensor2tensor's search with one limit and one stop rule for the whole batch.

    A translation may therefore depend on its neighbors in the batch. PAD is allowed,
    and the score of an unfinished hypothesis is its plain log probability.
    """

    def __post_init__(self) -> None:
        """Requires that there are no constraints, which tensor2tensor lacks."""
        assert self.constraints is None

    def limits(self, limits: tf.Tensor) -> tf.Tensor:
        """Returns the largest limit for every sentence."""
        longest = tf.reduce_max(tf.concat([limits, [0]], axis=0))
        return tf.broadcast_to(longest, tf.shape(limits))

    def forbidden(self, *_: object) -> None:
        """Returns None, because all tokens are allowed."""

    def done(self, status: SearchStatus) -> tf.Tensor:
        """Returns bool (rows,), all equal; see `batch_done_tensor2tensor`."""
        penalties = self.penalty(status.limits)
        return batch_done_tensor2tensor(status, penalties, self.nbest)

    def cut_score(self, log_probs: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Returns the plain log probability."""
        return log_probs

    def is_open(self, sentences: Beams) -> tf.Tensor:
        """Returns for every sentence whether any sentence is not done: bool (rows,)."""
        is_open = super().is_open(sentences)
        return tf.broadcast_to(tf.reduce_any(is_open), tf.shape(is_open))
