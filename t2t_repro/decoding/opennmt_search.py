"""OpenNMT-tf's beam search: what has ended keeps its place among the others.

A beam holds finished and unfinished hypotheses, and each step keeps the best `beam` of
all: of the continuations, and of the finished ones as they are. A sentence is done when
its whole beam has ended, or at its limit, where what has not ended is a result, too.

Three things follow OpenNMT-tf to the letter (utils/decoding.py:BeamSearch and
dynamic_decode). A finished hypothesis of n symbols is compared by the length penalty of
n + 1. One that has moved to another place of the beam is compared by the log
probability that its new place had before. And the results stand in the order of the
beam. But scores are those of the hypotheses, and a sentence that is done does not
change, as if each were alone in its batch.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.beam_step import Rules, SentenceInputs, next_candidates
from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import State, StepwiseDecoder


class Places(NamedTuple):
    """The places of the beams of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, beam), what the hypotheses end in.
        log_probs: float32 (rows, beam), -inf: none.
        compared: float32 (rows, beam), the log probabilities that decide.
        lengths: int32 (rows, beam), symbols of the hypotheses, EOS counted.
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
class OpenNMTMethod:
    """The search, as `batch.decode_batch` runs it."""

    decoder: StepwiseDecoder
    rules: Rules

    def start(
        self, state: State, limits: tf.Tensor, width: int | tf.Tensor, start_id: int
    ) -> Progress:
        """Returns one empty hypothesis per sentence; at limit 0 it is the result."""
        beam = self.rules.beam_size
        rows = tf.shape(limits)[0]
        log_probs = tf.repeat([[0.0] + [NEVER] * (beam - 1)], rows, axis=0)
        done = (limits <= 0)[:, None]
        places = Places(
            last_ids=tf.fill([rows, beam], start_id),
            log_probs=log_probs,
            compared=log_probs,
            lengths=tf.zeros([rows, beam], tf.int32),
            finished=tf.zeros([rows, beam], tf.bool),
            done=done,
            hypotheses=tf.fill([rows, beam, width], self.rules.pad_id),
        )
        searching = tf.math.count_nonzero(~done, dtype=tf.int32)
        return Progress(tf.constant(0), searching, places, state)

    def step(self, progress: Progress, asked: SentenceInputs) -> Progress:
        """Adds one symbol to every hypothesis that has not ended."""
        old, rules = progress.sentences, self.rules
        length, beam = progress.length + 1, rules.beam_size
        logits, state = self.decoder.step(old.last_ids, progress.length, progress.state)
        # All that is unfinished has one penalty; what has ended is put on its scale.
        penalty = rules.scoring.penalty
        level = old.compared * penalty(length) / penalty(old.lengths + 1)
        level = tf.where(old.finished, level, old.compared)
        candidates = next_candidates(
            logits, level, old.hypotheses, progress.length, asked, rules, old.finished
        )
        parents = candidates.parents
        had_ended, lengths, log_probs = (
            tf.gather(each, parents, batch_dims=1)
            for each in (old.finished, old.lengths, old.log_probs)
        )
        # OpenNMT-tf keeps these by place, not by hypothesis.
        compared = tf.where(had_ended, old.compared, candidates.log_probs)
        log_probs = tf.where(had_ended, log_probs, candidates.log_probs)
        finished = had_ended | tf.equal(candidates.ids, rules.eos_id)
        settled = tf.reduce_all(finished | tf.equal(log_probs, NEVER), 1, True)
        ids = tf.where(had_ended, rules.pad_id, candidates.ids)
        copied = tf.gather(old.hypotheses, parents, batch_dims=1)
        here = tf.equal(tf.range(tf.shape(copied)[2]), progress.length)
        new = Places(
            last_ids=candidates.ids,
            log_probs=log_probs,
            compared=compared,
            lengths=tf.where(had_ended, lengths, length),
            finished=finished,
            done=settled | (length >= asked.limits)[:, None],
            hypotheses=tf.where(here, ids[:, :, None], copied),
        )
        both = zip(old, new, strict=True)
        places = Places(*(_unless(old.done, *each) for each in both))
        return Progress(
            length=length,
            searching=tf.math.count_nonzero(~places.done, dtype=tf.int32),
            sentences=places,
            state=self.decoder.select_beams(state, parents) if beam > 1 else state,
        )

    def is_open(self, sentences: Places) -> tf.Tensor:
        """Which sentences are still searched: bool (rows,)."""
        return ~sentences.done[:, 0]

    def results(self, sentences: Places) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the hypotheses and their scores."""
        scores = self.rules.scoring.score(sentences.log_probs, sentences.lengths)
        return sentences.hypotheses, scores


def _unless(done: tf.Tensor, old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Keeps the old values of sentences that are done, bool (rows, 1)."""
    return tf.where(done[:, :, None] if new.shape.rank == 3 else done, old, new)
