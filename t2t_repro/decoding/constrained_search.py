"""Beam search whose outputs hold given terms (Post & Vilar 2018, arXiv:1804.06609).

The places of a beam are dealt to hypotheses by how many symbols of terms they have:
one to the best of each number in turn, the greatest first, then one to the second best,
and so on. An output may end only when it has all. (Hokamp & Liu 2017, arXiv:1704.07138,
keep a whole beam for each number.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding import lexical_constraints as term_states
from t2t_repro.decoding.beam_step import BeamMethod, Beams, SentenceInputs, next_beams
from t2t_repro.decoding.candidates import NEVER, Candidates
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms, TermState
from t2t_repro.decoding.top_k import top_k


class TermBeams(NamedTuple):
    """The hypotheses of the sentences still in the batch, and their terms."""

    beams: Beams
    terms: TermState


class TermsAsked(NamedTuple):
    """What the caller wants of each sentence: `ids` are those of `Terms`."""

    asked: SentenceInputs
    ids: tf.Tensor


@dataclass(frozen=True, eq=False)
class TermMethod:
    """Beam search for outputs that hold their terms, as `batch.decode_batch` runs it.

    `plain` is the search without terms. Of its constraints only `never` is heeded, and
    candidates are chosen in the same way whatever its algorithm.
    """

    plain: BeamMethod
    terms: Terms

    @property
    def decoder(self) -> StepwiseDecoder:
        """Scores the next symbols."""
        return self.plain.decoder

    def start(
        self, state: State, limits: tf.Tensor, width: int | tf.Tensor, start_id: int
    ) -> Progress:
        """Returns one empty hypothesis per sentence."""
        begun = self.plain.start(state, limits, width, start_id)
        none = term_states.begin(self.terms.ids, self.plain.rules.beam_size)
        return begun._replace(sentences=TermBeams(begun.sentences, none))

    def step(self, progress: Progress, asked: TermsAsked) -> Progress:
        """Adds one symbol to every hypothesis."""
        beams, states = progress.sentences
        rules, beam = self.plain.rules, self.plain.rules.beam_size
        terms = self.terms._replace(ids=asked.ids)
        logits, state = self.decoder.step(
            beams.last_ids, progress.length, progress.state
        )
        candidates = self._candidates(logits, beams, states, asked.ids)
        after = term_states.advance(
            tf.nest.map_structure(
                lambda each: tf.gather(each, candidates.parents, batch_dims=1), states
            ),
            terms,
            tf.gather(beams.last_ids, candidates.parents, batch_dims=1),
            candidates.ids,
        )
        ends = tf.equal(candidates.ids, rules.eos_id)
        log_probs, alive = _allocate_banks(
            tf.where(ends, NEVER, candidates.log_probs),
            term_states.covered(after, asked.ids),
            beam,
        )
        beams, done, parents = next_beams(
            beams,
            candidates,
            log_probs,
            alive,
            progress.length,
            asked.asked,
            rules,
        )
        after = tf.nest.map_structure(
            lambda each: tf.gather(each, alive, batch_dims=1), after
        )
        return Progress(
            length=progress.length + 1,
            searching=tf.math.count_nonzero(~done, dtype=tf.int32),
            sentences=TermBeams(beams, after),
            state=self.decoder.select_beams(state, parents) if beam > 1 else state,
        )

    def is_open(self, sentences: TermBeams) -> tf.Tensor:
        """Which sentences are still searched: bool (rows,)."""
        return self.plain.is_open(sentences.beams)

    def results(self, sentences: TermBeams) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the finished hypotheses and their scores."""
        return self.plain.results(sentences.beams)

    def _candidates(
        self, logits: tf.Tensor, beams: Beams, states: TermState, ids: tf.Tensor
    ) -> Candidates:
        """Picks the best continuations of each hypothesis, and those of its terms."""
        rules = self.plain.rules
        beam = rules.beam_size
        vocab = logits.shape[2] or tf.shape(logits)[2]
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        symbols = tf.range(vocab)
        never = (rules.pad_id, *(rules.constraints.never if rules.constraints else ()))
        forbidden = tf.reduce_any(tf.equal(symbols[:, None], never), axis=1)
        all_met = tf.reduce_all(term_states.met_if_it_ended(states, ids), axis=2)
        early = tf.equal(symbols, rules.eos_id) & ~all_met[:, :, None]
        allowed = tf.where(forbidden | early, NEVER, log_probs)
        # (rows, beam, vocab) -> (rows * beam, vocab)
        best, found = top_k(tf.reshape(allowed, [-1, vocab]), 2 * beam)
        best, found = (
            tf.reshape(each, [-1, beam, tf.shape(found)[1]]) for each in (best, found)
        )
        # What brings a term forward, and the end after all, are candidates however
        # improbable.
        end = tf.where(all_met, rules.eos_id, rules.pad_id)[:, :, None]
        wanted = tf.concat([term_states.next_symbols(states, ids), end], axis=2)
        twice = tf.reduce_any(tf.equal(wanted[..., None], found[:, :, None]), axis=3)
        same = tf.equal(wanted[..., None], wanted[:, :, None])
        earlier = tf.linalg.band_part(tf.ones_like(same[0, 0], tf.int32), -1, 0)
        earlier -= tf.linalg.diag(tf.ones_like(earlier[0]))
        twice |= tf.reduce_any(same & (earlier > 0), axis=3)
        scores = tf.gather(allowed, wanted, batch_dims=2)
        scores = tf.where(twice | tf.equal(wanted, rules.pad_id), NEVER, scores)
        ids_ = tf.concat([found, wanted], axis=2)
        totals = beams.log_probs[:, :, None] + tf.concat([best, scores], axis=2)
        rows, _, width = tf.unstack(tf.shape(ids_))
        parents = tf.broadcast_to(tf.range(beam)[:, None], [rows, beam, width])
        # (rows, beam, width) -> (rows, beam * width)
        flat = [rows, beam * width]
        return Candidates(*(tf.reshape(each, flat) for each in (totals, parents, ids_)))


def _allocate_banks(
    scores: tf.Tensor, banks: tf.Tensor, beam: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Deals the places of a beam to banks in turn, the greatest first.

    Args:
        scores: float32 (rows, candidates), -inf for none.
        banks: int32 (rows, candidates), symbols of terms.
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
