"""Beam search with lexical constraints (Post & Vilar 2018, arXiv:1804.06609).

Dynamic beam allocation: a candidate's bank is its number of term tokens. The beam takes
the best candidate of each bank, starting with the most tokens, then the second best of
each bank, and so on. A hypothesis may end only when it contains all terms. (Hokamp &
Liu 2017, arXiv:1704.07138, keep a whole beam for each bank.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding import lexical_constraints as term_states
from t2t_repro.decoding.algorithms.algorithm import SentenceInputs
from t2t_repro.decoding.algorithms.t2t import Beams, T2TSearch
from t2t_repro.decoding.candidates import NEVER, Candidates, top_k
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms, TermState


class TermBeams(NamedTuple):
    """The hypotheses of the sentences still in the batch, and their terms."""

    beams: Beams
    terms: TermState


class TermInputs(NamedTuple):
    """The inputs of the search for each sentence; `ids` is `Terms.ids`."""

    sentences: SentenceInputs
    ids: tf.Tensor


@dataclass(frozen=True, eq=False)
class ConstrainedSearch:
    """Beam search with lexical constraints: a `Method` of `decode_batch`.

    Attributes:
        algorithm: The search without terms. Its constraints are ignored, except for
            `never`, and its choice of candidates is replaced.
        terms: The terms of the batch.
    """

    algorithm: T2TSearch
    terms: Terms

    def start(self, inputs: TermInputs, width: int | tf.Tensor) -> TermBeams:
        """Returns one empty hypothesis per sentence."""
        beams = self.algorithm.start(inputs.sentences, width)
        return TermBeams(beams, term_states.begin(inputs.ids, self.algorithm.beam_size))

    def step(
        self, decoder: StepwiseDecoder, progress: Progress, inputs: TermInputs
    ) -> Progress:
        """Adds one token to every hypothesis."""
        beams, states = progress.sentences
        logits, state = decoder.step(beams.last_ids, progress.length, progress.state)
        candidates = self._candidates(logits, beams, states, inputs.ids)
        after = term_states.advance(
            _select(states, candidates.parents),
            self.terms._replace(ids=inputs.ids),
            tf.gather(beams.last_ids, candidates.parents, batch_dims=1),
            candidates.ids,
        )
        ends = tf.equal(candidates.ids, EOS_ID)
        alive = _allocate_banks(
            tf.where(ends, NEVER, candidates.log_probs),
            term_states.count_matched_tokens(after, inputs.ids),
            self.algorithm.beam_size,
        )
        progress = progress._replace(sentences=beams, state=state)
        # Only EOS finishes a hypothesis: one that is cut at the limit may lack terms,
        # and is a result only if none has finished.
        progress = self.algorithm.advance(
            decoder, progress, inputs.sentences, candidates, alive, ends
        )
        after = _select(after, alive[1])
        return progress._replace(sentences=TermBeams(progress.sentences, after))

    def is_open(self, sentences: TermBeams) -> tf.Tensor:
        """Returns which sentences are not done: bool (rows,)."""
        return self.algorithm.is_open(sentences.beams)

    def results(self, sentences: TermBeams) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the finished hypotheses and their scores."""
        return self.algorithm.results(sentences.beams)

    def _candidates(
        self, logits: tf.Tensor, beams: Beams, states: TermState, ids: tf.Tensor
    ) -> Candidates:
        """Returns each hypothesis's best continuations and all that advance a term."""
        beam, constraints = self.algorithm.beam_size, self.algorithm.constraints
        vocab = logits.shape[2] or tf.shape(logits)[2]
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        tokens = tf.range(vocab)
        never = (PAD_ID, *(constraints.never if constraints else ()))
        forbidden = tf.reduce_any(tf.equal(tokens[:, None], never), axis=1)
        all_met = tf.reduce_all(term_states.find_met_terms(states, ids), axis=2)
        early = tf.equal(tokens, EOS_ID) & ~all_met[:, :, None]
        allowed = tf.where(forbidden | early, NEVER, log_probs)
        # (rows, beam, vocab) -> (rows * beam, vocab)
        best, best_ids = top_k(tf.reshape(allowed, [-1, vocab]), 2 * beam)
        best, best_ids = (
            tf.reshape(each, [-1, beam, tf.shape(best_ids)[1]])
            for each in (best, best_ids)
        )
        # The next tokens of terms, and EOS after all terms, are candidates even if they
        # are improbable.
        end = tf.where(all_met, EOS_ID, PAD_ID)[:, :, None]
        extra = tf.concat([term_states.next_tokens(states, ids), end], axis=2)
        repeated = tf.reduce_any(
            tf.equal(extra[..., None], best_ids[:, :, None]), axis=3
        )
        same = tf.equal(extra[..., None], extra[:, :, None])
        indices = tf.range(tf.shape(extra)[2])
        repeated |= tf.reduce_any(same & (indices < indices[:, None]), axis=3)
        scores = tf.gather(allowed, extra, batch_dims=2)
        scores = tf.where(repeated | tf.equal(extra, PAD_ID), NEVER, scores)
        ids_ = tf.concat([best_ids, extra], axis=2)
        totals = beams.log_probs[:, :, None] + tf.concat([best, scores], axis=2)
        rows, _, width = tf.unstack(tf.shape(ids_))
        parents = tf.broadcast_to(tf.range(beam)[:, None], [rows, beam, width])
        # (rows, beam, width) -> (rows, beam * width)
        flat = [rows, beam * width]
        return Candidates(*(tf.reshape(each, flat) for each in (totals, parents, ids_)))


def _select(states: TermState, indices: tf.Tensor) -> TermState:
    """Returns the states of hypotheses or candidates, by index: int32 (rows, n)."""
    return TermState(*(tf.gather(each, indices, batch_dims=1) for each in states))


def _allocate_banks(
    scores: tf.Tensor, banks: tf.Tensor, beam: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Selects candidates from the banks in turn, starting with the highest bank.

    Args:
        scores: float32 (rows, candidates), -inf for missing candidates.
        banks: int32 (rows, candidates), number of term tokens.
        beam: Number of candidates to select.

    Returns:
        The scores of the selected candidates, float32 (rows, beam), best first, and
        their indices, int32 (rows, beam).
    """
    count = tf.shape(scores)[1]
    indices = tf.range(count)
    ahead = tf.greater(scores[:, None], scores[..., None])
    ahead |= tf.equal(scores[:, None], scores[..., None]) & (indices < indices[:, None])
    same = tf.equal(banks[:, None], banks[..., None])
    rank = tf.math.count_nonzero(ahead & same, axis=2, dtype=tf.int32)
    most = tf.reduce_max(banks, axis=1, keepdims=True)
    turn = rank * (most + 1) + (most - banks)
    turn = tf.where(tf.equal(scores, NEVER), tf.int32.max - count + indices, turn)
    _, chosen = tf.math.top_k(-turn, beam)
    best, order = tf.math.top_k(tf.gather(scores, chosen, batch_dims=1), beam)
    return best, tf.gather(chosen, order, batch_dims=1)
