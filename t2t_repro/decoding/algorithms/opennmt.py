"""OpenNMT-tf's beam search: finished hypotheses stay in the beam.

Each step keeps the best `beam` of all continuations and finished hypotheses. A sentence
is done when its whole beam has finished, or at its limit, where unfinished hypotheses
are results, too.

Three details are exactly those of OpenNMT-tf (utils/decoding.py:BeamSearch and
dynamic_decode). A finished hypothesis of n tokens is ranked with the length penalty
of n + 1. A finished hypothesis that moves to another position of the beam is ranked by
the log probability that was at this position before. Results are in the order of
the beam. Two details differ: returned scores use the hypotheses' own log probabilities,
and a sentence that is done does not change, as in a batch of one sentence.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm, SentenceInputs
from t2t_repro.decoding.algorithms.t2t import T2TSearch
from t2t_repro.decoding.candidates import NEVER, best_candidates, only_eos
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, StepwiseDecoder


class Places(NamedTuple):
    """The beams of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, beam), the last tokens of the hypotheses.
        log_probs: float32 (rows, beam), -inf for missing hypotheses.
        compared: float32 (rows, beam), the log probabilities used for ranking.
        lengths: int32 (rows, beam), lengths of the hypotheses, EOS included.
        finished: bool (rows, beam).
        done: bool (rows, 1), whether the sentence's search is over.
        hypotheses: int32 (rows, beam, width).
    """

    last_ids: tf.Tensor
    log_probs: tf.Tensor
    compared: tf.Tensor
    lengths: tf.Tensor
    finished: tf.Tensor
    done: tf.Tensor
    hypotheses: tf.Tensor


@dataclass(frozen=True)
class OpenNMTSearch(SearchAlgorithm):
    """OpenNMT-tf's search; its score is tensor2tensor's."""

    @property
    def constrained(self) -> T2TSearch:
        """tensor2tensor's search: OpenNMT-tf does not support lexical constraints."""
        return T2TSearch(**vars(self))

    def start(self, inputs: SentenceInputs, width: int | tf.Tensor) -> Places:
        """Returns one empty hypothesis per sentence, the result if the limit is 0."""
        beam = self.beam_size
        rows = tf.shape(inputs.limits)[0]
        log_probs = tf.repeat([[0.0] + [NEVER] * (beam - 1)], rows, axis=0)
        return Places(
            last_ids=tf.fill([rows, beam], PAD_ID),
            log_probs=log_probs,
            compared=log_probs,
            lengths=tf.zeros([rows, beam], tf.int32),
            finished=tf.zeros([rows, beam], tf.bool),
            done=(inputs.limits <= 0)[:, None],
            hypotheses=tf.fill([rows, beam, width], PAD_ID),
        )

    def step(
        self, decoder: StepwiseDecoder, progress: Progress, inputs: SentenceInputs
    ) -> Progress:
        """Adds one token to every unfinished hypothesis."""
        old, length = progress.sentences, progress.length + 1
        logits, state = decoder.step(old.last_ids, progress.length, progress.state)
        # All unfinished hypotheses have the same length, and thus the same penalty, so
        # only the finished ones need to be rescaled.
        level = old.compared * self.penalty(length) / self.penalty(old.lengths + 1)
        level = tf.where(old.finished, level, old.compared)
        logits = only_eos(logits, old.finished)
        forbidden = self.forbidden(inputs, old.hypotheses, progress.length, logits)
        if forbidden is not None and forbidden.dtype == tf.bool:
            forbidden &= ~old.finished[:, :, None]
        candidates = best_candidates(logits, level, self.num_candidates, forbidden)
        parents = candidates.parents
        had_ended, lengths, log_probs = (
            tf.gather(each, parents, batch_dims=1)
            for each in (old.finished, old.lengths, old.log_probs)
        )
        # OpenNMT-tf keeps `compared` per position in the beam, not per hypothesis.
        compared = tf.where(had_ended, old.compared, candidates.log_probs)
        log_probs = tf.where(had_ended, log_probs, candidates.log_probs)
        finished = had_ended | tf.equal(candidates.ids, EOS_ID)
        settled = tf.reduce_all(finished | tf.equal(log_probs, NEVER), 1, True)
        ids = tf.where(had_ended, PAD_ID, candidates.ids)
        copied = tf.gather(old.hypotheses, parents, batch_dims=1)
        is_added = tf.equal(tf.range(tf.shape(copied)[2]), progress.length)
        new = Places(
            last_ids=candidates.ids,
            log_probs=log_probs,
            compared=compared,
            lengths=tf.where(had_ended, lengths, length),
            finished=finished,
            done=settled | (length >= inputs.limits)[:, None],
            hypotheses=tf.where(is_added, ids[:, :, None], copied),
        )
        if self.beam_size > 1:
            state = decoder.select_beams(state, parents)
        places = tf.nest.map_structure(partial(_keep_if_done, old.done), old, new)
        return Progress(length, places, state)

    def is_open(self, sentences: Places) -> tf.Tensor:
        """Returns which sentences are not done: bool (rows,)."""
        return ~sentences.done[:, 0]

    def results(self, sentences: Places) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the hypotheses and their scores."""
        return sentences.hypotheses, self.score(sentences.log_probs, sentences.lengths)


def _keep_if_done(done: tf.Tensor, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Returns `old` where `done`, bool (rows, 1), is true, and `new` elsewhere."""
    return tf.where(done[:, :, None] if new.shape.rank == 3 else done, old, new)
