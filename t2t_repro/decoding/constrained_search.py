"""Beam search whose outputs hold given terms (Post & Vilar 2018, arXiv:1804.06609).

The places of a beam are dealt to hypotheses by how many tokens of terms they have:
one to the best of each number in turn, the greatest first, then one to the second best,
and so on. An output may end only when it has all. (Hokamp & Liu 2017, arXiv:1704.07138,
keep a whole beam for each number.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding import lexical_constraints as term_states
from t2t_repro.decoding.algorithms.algorithm import SentenceInputs
from t2t_repro.decoding.algorithms.t2t import Beams, T2TSearch
from t2t_repro.decoding.candidates import NEVER, Candidates, top_k
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms, TermState


class TermBeams(NamedTuple):
    """The hypotheses of the sentences still in the batch, and their terms."""

    beams: Beams
    terms: TermState


class TermInputs(NamedTuple):
    """The inputs of each sentence: `ids` are those of `Terms`."""

    sentences: SentenceInputs
    ids: tf.Tensor


@dataclass(frozen=True, eq=False)
class ConstrainedSearch:
    """Beam search for outputs that hold their terms: a `Method` of `decode_batch`.

    `algorithm` is the search without terms. The only constraint with an
    effect is `never`, and candidates are chosen in the same way whatever the algorithm.
    """

    algorithm: T2TSearch
    terms: Terms

    def start(
        self, state: State, inputs: TermInputs, width: int | tf.Tensor
    ) -> Progress:
        """Returns one empty hypothesis per sentence."""
        begun = self.algorithm.start(state, inputs.sentences, width)
        none = term_states.begin(inputs.ids, self.algorithm.beam_size)
        return begun._replace(sentences=TermBeams(begun.sentences, none))

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
            term_states.covered(after, inputs.ids),
            self.algorithm.beam_size,
        )
        progress = progress._replace(sentences=beams, state=state)
        progress = self.algorithm.advance(
            decoder, progress, inputs.sentences, candidates, alive
        )
        after = _select(after, alive[1])
        return progress._replace(sentences=TermBeams(progress.sentences, after))

    def is_open(self, sentences: TermBeams) -> tf.Tensor:
        """Returns which sentences are still searched: bool (rows,)."""
        return self.algorithm.is_open(sentences.beams)

    def results(self, sentences: TermBeams) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the finished hypotheses and their scores."""
        return self.algorithm.results(sentences.beams)

    def _candidates(
        self, logits: tf.Tensor, beams: Beams, states: TermState, ids: tf.Tensor
    ) -> Candidates:
        """Picks the best continuations of each hypothesis, and those of its terms."""
        beam, constraints = self.algorithm.beam_size, self.algorithm.constraints
        vocab = logits.shape[2] or tf.shape(logits)[2]
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        tokens = tf.range(vocab)
        never = (PAD_ID, *(constraints.never if constraints else ()))
        forbidden = tf.reduce_any(tf.equal(tokens[:, None], never), axis=1)
        all_met = tf.reduce_all(term_states.met_if_it_ended(states, ids), axis=2)
        early = tf.equal(tokens, EOS_ID) & ~all_met[:, :, None]
        allowed = tf.where(forbidden | early, NEVER, log_probs)
        # (rows, beam, vocab) -> (rows * beam, vocab)
        best, found = top_k(tf.reshape(allowed, [-1, vocab]), 2 * beam)
        best, found = (
            tf.reshape(each, [-1, beam, tf.shape(found)[1]]) for each in (best, found)
        )
        # What brings a term forward, and the end after all, are candidates however
        # improbable.
        end = tf.where(all_met, EOS_ID, PAD_ID)[:, :, None]
        wanted = tf.concat([term_states.next_tokens(states, ids), end], axis=2)
        twice = tf.reduce_any(tf.equal(wanted[..., None], found[:, :, None]), axis=3)
        same = tf.equal(wanted[..., None], wanted[:, :, None])
        places = tf.range(tf.shape(wanted)[2])
        twice |= tf.reduce_any(same & (places < places[:, None]), axis=3)
        scores = tf.gather(allowed, wanted, batch_dims=2)
        scores = tf.where(twice | tf.equal(wanted, PAD_ID), NEVER, scores)
        ids_ = tf.concat([found, wanted], axis=2)
        totals = beams.log_probs[:, :, None] + tf.concat([best, scores], axis=2)
        rows, _, width = tf.unstack(tf.shape(ids_))
        parents = tf.broadcast_to(tf.range(beam)[:, None], [rows, beam, width])
        # (rows, beam, width) -> (rows, beam * width)
        flat = [rows, beam * width]
        return Candidates(*(tf.reshape(each, flat) for each in (totals, parents, ids_)))


def _select(states: TermState, indices: tf.Tensor) -> TermState:
    """Returns the states of some hypotheses or candidates, int32 (rows, n)."""
    return TermState(*(tf.gather(each, indices, batch_dims=1) for each in states))


def _allocate_banks(
    scores: tf.Tensor, banks: tf.Tensor, beam: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Deals the places of a beam to banks in turn, the greatest first.

    Args:
        scores: float32 (rows, candidates), -inf for none.
        banks: int32 (rows, candidates), tokens of terms.
        beam: how many places.

    Returns:
        The scores of the chosen candidates, best first, float32 (rows, beam), and
        their places, int32 (rows, beam).
    """
    count = tf.shape(scores)[1]
    places = tf.range(count)
    ahead = tf.greater(scores[:, None], scores[..., None])
    ahead |= tf.equal(scores[:, None], scores[..., None]) & (places < places[:, None])
    same = tf.equal(banks[:, None], banks[..., None])
    rank = tf.math.count_nonzero(ahead & same, axis=2, dtype=tf.int32)
    most = tf.reduce_max(banks, axis=1, keepdims=True)
    turn = rank * (most + 1) + (most - banks)
    turn = tf.where(tf.equal(scores, NEVER), tf.int32.max - count + places, turn)
    _, chosen = tf.math.top_k(-turn, beam)
    best, order = tf.math.top_k(tf.gather(scores, chosen, batch_dims=1), beam)
    return best, tf.gather(chosen, order, batch_dims=1)
