"""One step of beam search: every hypothesis grows by one symbol."""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.candidates import NEVER, Candidates, best_candidates
from t2t_repro.decoding.decoder import Decoder, State
from t2t_repro.decoding.stopping import (
    batch_done_tensor2tensor,
    length_penalty,
    sentences_done,
)


@dataclass(frozen=True)
class Rules:
    """What stays the same through a search; the fields are `beam_search`'s."""

    beam_size: int
    alpha: float
    nbest: int
    eos_id: int
    pad_id: int
    tensor2tensor: bool

    def __post_init__(self) -> None:
        """Refuses what the algorithm is not made for."""
        if self.beam_size < 1:
            raise ValueError(f"beam_size is {self.beam_size}, must be at least 1")
        if not 1 <= self.nbest <= self.beam_size:
            raise ValueError(f"nbest is {self.nbest}, must be 1 to {self.beam_size}")
        if self.alpha < 0:
            raise ValueError(f"alpha is {self.alpha}, must be 0 or more")


class Beams(NamedTuple):
    """What changes with each step, for the sentences still in the batch.

    Attributes:
        length: int32 (), symbols generated so far.
        searching: int32 (), sentences whose search is not over.
        last_ids: int32 (rows, beam), what the unfinished hypotheses end in.
        log_probs: float32 (rows, beam), the unfinished ones, best first; all -inf once
            the sentence's search is over, so that nothing can change any more.
        scores: float32 (rows, beam), the finished ones, best first; -inf: none.
        hypotheses: int32 (rows, 2 * beam, width), the unfinished, then the finished.
        state: the decoder's.
    """

    length: tf.Tensor
    searching: tf.Tensor
    last_ids: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor
    hypotheses: tf.Tensor
    state: State


def start(
    state: State,
    limits: tf.Tensor,
    width: int | tf.Tensor,
    start_id: int,
    rules: Rules,
) -> Beams:
    """Returns one empty hypothesis per sentence; at limit 0 it is the result."""
    beam = rules.beam_size
    rows = tf.shape(limits)[0]
    empty = tf.constant([[0.0] + [NEVER] * (beam - 1)])
    open_ = (limits > 0)[:, None]
    return Beams(
        length=tf.constant(0),
        searching=tf.math.count_nonzero(open_, dtype=tf.int32),
        last_ids=tf.fill([rows, beam], start_id),
        log_probs=tf.where(open_, empty, NEVER),
        scores=tf.where(open_, NEVER, empty),
        hypotheses=tf.fill([rows, 2 * beam, width], rules.pad_id),
        state=state,
    )


def step(decoder: Decoder, beams: Beams, limits: tf.Tensor, rules: Rules) -> Beams:
    """Adds one symbol to every hypothesis."""
    beam = rules.beam_size
    logits, state = decoder.step(beams.last_ids, beams.length, beams.state)
    # 2 * beam, because up to `beam` of the best may end here. Greedy search (beam 1)
    # follows the single best: when that is EOS, nothing is left to continue.
    candidates = best_candidates(
        logits,
        beams.log_probs,
        count=2 * beam if beam > 1 else 1,
        forbidden_id=None if rules.tensor2tensor else rules.pad_id,
    )
    length = beams.length + 1
    ends = tf.equal(candidates.ids, rules.eos_id)
    log_probs, alive = tf.math.top_k(tf.where(ends, NEVER, candidates.log_probs), beam)
    parents = tf.gather(candidates.parents, alive, batch_dims=1)
    ids = tf.gather(candidates.ids, alive, batch_dims=1)
    scores, sources, endings = _finish(beams.scores, candidates, ends, length, rules)

    done_rule = batch_done_tensor2tensor if rules.tensor2tensor else sentences_done
    done = done_rule(
        length, limits, log_probs, scores, alpha=rules.alpha, nbest=rules.nbest
    )[:, None]
    # At the limit without a finished hypothesis, the unfinished ones are the result.
    cut = done & tf.equal(scores[:, :1], NEVER)
    cut_scores = log_probs
    if not rules.tensor2tensor:
        cut_scores /= length_penalty(length, rules.alpha)
    scores = tf.where(cut, cut_scores, scores)
    sources = tf.where(cut, parents, sources)
    endings = tf.where(cut, ids, endings)
    return Beams(
        length=length,
        searching=tf.math.count_nonzero(~done, dtype=tf.int32),
        last_ids=ids,
        log_probs=tf.where(done, NEVER, log_probs),
        scores=scores,
        hypotheses=_append(
            beams.hypotheses,
            tf.concat([parents, sources], axis=1),
            tf.concat([ids, endings], axis=1),
            beams.length,
        ),
        state=decoder.select_beams(state, parents) if beam > 1 else state,
    )


def _finish(
    scores: tf.Tensor,
    candidates: Candidates,
    ends: tf.Tensor,
    length: tf.Tensor,
    rules: Rules,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Lets the candidates that end compete with the finished hypotheses.

    Args:
        scores: float32 (rows, beam), of the finished hypotheses.
        candidates: of this step.
        ends: bool (rows, candidates), whether the candidate ends in EOS.
        length: int32 (), of the candidates.
        rules: of the search.

    Returns:
        scores: float32 (rows, beam), of the finished hypotheses now.
        sources: int32 (rows, beam), where each of them, or its beginning, is found
            among `Beams.hypotheses`.
        endings: int32 (rows, beam), EOS for the new ones, PAD for the old.
    """
    beam = rules.beam_size
    normalised = candidates.log_probs / length_penalty(length, rules.alpha)
    ended = tf.where(ends, normalised, NEVER)
    scores, chosen = tf.math.top_k(tf.concat([scores, ended], axis=1), beam)
    rows = tf.shape(scores)[0]
    old = tf.broadcast_to(tf.range(beam, 2 * beam), [rows, beam])
    origin = tf.concat([old, candidates.parents], axis=1)
    sources = tf.gather(origin, chosen, batch_dims=1)
    return scores, sources, tf.where(chosen < beam, rules.pad_id, rules.eos_id)


def _append(
    hypotheses: tf.Tensor, sources: tf.Tensor, ids: tf.Tensor, column: tf.Tensor
) -> tf.Tensor:
    """Copies each hypothesis from its source and writes one symbol into `column`.

    Args:
        hypotheses: int32 (rows, 2 * beam, width).
        sources: int32 (rows, 2 * beam), indices into the second axis.
        ids: int32 (rows, 2 * beam); PAD for a hypothesis that ended before.
        column: int32 ().
    """
    copied = tf.gather(hypotheses, sources, batch_dims=1)
    here = tf.equal(tf.range(tf.shape(hypotheses)[2]), column)
    return tf.where(here, ids[:, :, None], copied)
