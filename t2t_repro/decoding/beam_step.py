"""One step of beam search: every hypothesis grows by one symbol."""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.candidates import (
    NEVER,
    Candidates,
    best_allowed_candidates,
    best_candidates,
)
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import Progress, Rows
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.stopping import (
    ALGORITHMS,
    MARIAN,
    OPENNMT,
    T2T,
    TRANSFORMERS,
    Scoring,
    batch_done_tensor2tensor,
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
    constraints: Constraints | None = None
    algorithm: str = T2T
    word_penalty: float = 0.0

    def __post_init__(self) -> None:
        """Refuses what the algorithm is not made for."""
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {self.algorithm}, must be of {ALGORITHMS}")
        if self.tensor2tensor and self.algorithm != T2T:
            raise ValueError("tensor2tensor's rules are of its own algorithm")
        if self.beam_size < 1:
            raise ValueError(f"beam_size is {self.beam_size}, must be at least 1")
        if not 1 <= self.nbest <= self.beam_size:
            raise ValueError(f"nbest is {self.nbest}, must be 1 to {self.beam_size}")
        if self.alpha < 0:
            raise ValueError(f"alpha is {self.alpha}, must be 0 or more")
        if self.tensor2tensor and self.constraints:
            raise ValueError("tensor2tensor's rules know no constraints")

    @property
    def scoring(self) -> Scoring:
        """How log probabilities become scores."""
        return Scoring(self.alpha, self.algorithm, self.word_penalty)


class SentenceInputs(NamedTuple):
    """What the caller wants of each sentence.

    Attributes:
        limits: int32 (rows,), the most symbols, EOS counted.
        sentence_constraints: `SentenceConstraints`, or () without constraints.
    """

    limits: tf.Tensor
    sentence_constraints: Rows


class Beams(NamedTuple):
    """The hypotheses of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, beam), what the unfinished hypotheses end in.
        log_probs: float32 (rows, beam), the unfinished ones, best first; all -inf once
            the sentence's search is over, so that nothing can change any more.
        scores: float32 (rows, beam), the finished ones, best first; -inf: none.
        hypotheses: int32 (rows, 2 * beam, width), the unfinished, then the finished.
    """

    last_ids: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor
    hypotheses: tf.Tensor


@dataclass(frozen=True)
class BeamMethod:
    """Beam search, as `batch.decode_batch` runs it."""

    decoder: StepwiseDecoder
    rules: Rules

    def start(
        self, state: State, limits: tf.Tensor, width: int | tf.Tensor, start_id: int
    ) -> Progress:
        """Returns one empty hypothesis per sentence; at limit 0 it is the result."""
        beam = self.rules.beam_size
        rows = tf.shape(limits)[0]
        empty = tf.constant([[0.0] + [NEVER] * (beam - 1)])
        open_ = (limits > 0)[:, None]
        beams = Beams(
            last_ids=tf.fill([rows, beam], start_id),
            log_probs=tf.where(open_, empty, NEVER),
            scores=tf.where(open_, NEVER, empty),
            hypotheses=tf.fill([rows, 2 * beam, width], self.rules.pad_id),
        )
        searching = tf.math.count_nonzero(open_, dtype=tf.int32)
        return Progress(tf.constant(0), searching, beams, state)

    def step(self, progress: Progress, asked: SentenceInputs) -> Progress:
        """Adds one symbol to every hypothesis."""
        beams, rules = progress.sentences, self.rules
        beam = rules.beam_size
        logits, state = self.decoder.step(
            beams.last_ids, progress.length, progress.state
        )
        candidates = next_candidates(
            logits,
            beams.log_probs,
            beams.hypotheses[:, :beam],
            progress.length,
            asked,
            rules,
        )
        ends = tf.equal(candidates.ids, rules.eos_id)
        candidates = _looked_at(candidates, ends, beams.scores, rules)
        log_probs, alive = tf.math.top_k(
            tf.where(ends, NEVER, candidates.log_probs), beam
        )
        beams, done, parents = next_beams(
            beams, candidates, log_probs, alive, progress.length, asked, rules
        )
        return Progress(
            length=progress.length + 1,
            searching=tf.math.count_nonzero(~done, dtype=tf.int32),
            sentences=beams,
            state=self.decoder.select_beams(state, parents) if beam > 1 else state,
        )

    def is_open(self, sentences: Beams) -> tf.Tensor:
        """Which sentences are still searched: bool (rows,)."""
        return tf.not_equal(sentences.log_probs[:, 0], NEVER)

    def results(self, sentences: Beams) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the finished hypotheses and their scores."""
        return sentences.hypotheses[:, self.rules.beam_size :], sentences.scores


def next_beams(
    beams: Beams,
    candidates: Candidates,
    log_probs: tf.Tensor,
    alive: tf.Tensor,
    column: tf.Tensor,
    asked: SentenceInputs,
    rules: Rules,
) -> tuple[Beams, tf.Tensor, tf.Tensor]:
    """Follows the chosen candidates, and lets those with EOS finish.

    Args:
        beams: before the step.
        candidates: of the step.
        log_probs: float32 (rows, beam), of the chosen, best first.
        alive: int32 (rows, beam), their places among the candidates.
        column: int32 (), symbols of a hypothesis before the step.
        asked: of these sentences.
        rules: of the search.

    Returns:
        The beams after the step; which sentences are done, bool (rows, 1); and the
        parents of the unfinished hypotheses, int32 (rows, beam).
    """
    length = column + 1
    ends = tf.equal(candidates.ids, rules.eos_id)
    if rules.algorithm == MARIAN:  # What is cut is finished, too.
        ends |= (length >= asked.limits)[:, None]
    parents = tf.gather(candidates.parents, alive, batch_dims=1)
    ids = tf.gather(candidates.ids, alive, batch_dims=1)
    finished = _finish(beams.scores, candidates, ends, length, rules)
    done = _done(length, asked.limits, log_probs, finished.scores, rules)
    unfinished = _Results(log_probs, parents, ids)
    finished = _cut(done, length, unfinished, finished, rules)
    found = Beams(
        last_ids=ids,
        log_probs=tf.where(done, NEVER, log_probs),
        scores=finished.scores,
        hypotheses=_append(
            beams.hypotheses,
            tf.concat([parents, finished.sources], axis=1),
            tf.concat([ids, finished.endings], axis=1),
            column,
        ),
    )
    return found, done, parents


class _Results(NamedTuple):
    """Hypotheses that compete for the result.

    Attributes:
        scores: float32 (rows, beam), -inf: none.
        sources: int32 (rows, beam), which of `Beams.hypotheses` each continues or is.
        endings: int32 (rows, beam), the symbol that was added; PAD for the old ones.
    """

    scores: tf.Tensor
    sources: tf.Tensor
    endings: tf.Tensor


def next_candidates(
    logits: tf.Tensor,
    log_probs: tf.Tensor,
    hypotheses: tf.Tensor,
    column: tf.Tensor,
    asked: SentenceInputs,
    rules: Rules,
    finished: tf.Tensor | None = None,
) -> Candidates:
    """Picks the best continuations of each sentence.

    They are 2 * beam, because up to `beam` of the best may end here. Greedy search
    (beam 1) follows the single best: when that is EOS, nothing is left to continue.

    Args:
        logits: float (rows, beam, V).
        log_probs: float32 (rows, beam), of the hypotheses.
        hypotheses: int32 (rows, beam, width).
        column: int32 (), their symbols.
        asked: of these sentences.
        rules: of the search.
        finished: bool (rows, beam), those that go on with EOS, at no cost; None: none.
    """
    beam = rules.beam_size
    constraints, eos, pad = rules.constraints, rules.eos_id, rules.pad_id
    few = beam == 1 or rules.algorithm in (MARIAN, OPENNMT)
    count = beam if few else 2 * beam
    if rules.algorithm == TRANSFORMERS:
        finished = (column + 1 >= asked.limits)[:, None]
    if finished is not None:
        # (rows, beam or 1, 1) and (V,): nothing but EOS, as if it were certain.
        other = tf.not_equal(tf.range(tf.shape(logits)[2]), eos)
        logits = tf.where(
            finished[:, :, None],
            tf.where(other, NEVER, 0.0),
            tf.cast(logits, tf.float32),
        )
    if constraints is None or constraints.only_symbols:
        never = None
        if constraints is not None:
            never = constraints.forbidden_ids(
                asked.sentence_constraints, column, eos_id=eos, pad_id=pad
            )
        elif not rules.tensor2tensor:
            never = tf.fill([tf.shape(logits)[0], 1], pad)
        return best_candidates(logits, log_probs, count, never)
    forbidden = constraints.forbidden(
        asked.sentence_constraints,
        hypotheses,
        column,
        logits.shape[2] or tf.shape(logits)[2],
        eos_id=eos,
        pad_id=pad,
    )
    if rules.algorithm == OPENNMT and finished is not None:
        forbidden &= ~finished[:, :, None]
    return best_allowed_candidates(logits, log_probs, count, forbidden)


def _looked_at(
    candidates: Candidates, ends: tf.Tensor, scores: tf.Tensor, rules: Rules
) -> Candidates:
    """Drops the candidates that an algorithm does not look at.

    Every finished hypothesis takes a place of Marian's beam; Transformers lets only
    the best `beam` candidates end. `ends` is bool (rows, candidates), `scores` float32
    (rows, beam), of the finished hypotheses.
    """
    if rules.algorithm == T2T:
        return candidates
    rank = tf.range(tf.shape(ends)[1])
    if rules.algorithm == MARIAN:
        open_ = tf.math.count_nonzero(tf.equal(scores, NEVER), 1, True, tf.int32)
        dropped = rank >= open_
    else:
        dropped = ends & (rank >= rules.beam_size)
    log_probs = tf.where(dropped, NEVER, candidates.log_probs)
    return candidates._replace(log_probs=log_probs)


def _done(
    length: tf.Tensor,
    limits: tf.Tensor,
    log_probs: tf.Tensor,
    scores: tf.Tensor,
    rules: Rules,
) -> tf.Tensor:
    """Decides which sentences are done: bool (rows, 1)."""
    alpha, nbest, algorithm = rules.alpha, rules.nbest, rules.algorithm
    if rules.tensor2tensor:
        return batch_done_tensor2tensor(
            length, limits, log_probs, scores, alpha=alpha, nbest=nbest
        )[:, None]
    if rules.word_penalty:
        return (length >= limits)[:, None] | tf.equal(log_probs[:, :1], NEVER)
    if algorithm == TRANSFORMERS:
        # Its `early_stopping` false: hypotheses are judged as if they ended here, and
        # compared with the worst of a full beam.
        reachable = log_probs[:, :1] / rules.scoring.penalty(length)
        return (length >= limits)[:, None] | (scores[:, -1:] >= reachable)
    # Marian goes on until nothing is left to continue; the wanted are final earlier.
    return sentences_done(
        length,
        limits,
        log_probs,
        scores,
        alpha=alpha,
        nbest=nbest,
        algorithm=algorithm,
    )[:, None]


def _cut(
    done: tf.Tensor,
    length: tf.Tensor,
    unfinished: _Results,
    finished: _Results,
    rules: Rules,
) -> _Results:
    """Makes the unfinished hypotheses the result where none was finished in time.

    `done` is bool (rows, 1); the scores of `unfinished` are log probabilities.
    """
    cut = done & tf.equal(finished.scores[:, :1], NEVER)
    cut_scores = unfinished.scores
    if not rules.tensor2tensor:
        cut_scores = rules.scoring.score(cut_scores, length)
    return _Results(
        scores=tf.where(cut, cut_scores, finished.scores),
        sources=tf.where(cut, unfinished.sources, finished.sources),
        endings=tf.where(cut, unfinished.endings, finished.endings),
    )


def _finish(
    scores: tf.Tensor,
    candidates: Candidates,
    ends: tf.Tensor,
    length: tf.Tensor,
    rules: Rules,
) -> _Results:
    """Lets the candidates that end compete with the finished hypotheses.

    Args:
        scores: float32 (rows, beam), of the finished hypotheses.
        candidates: of this step.
        ends: bool (rows, candidates), whether the candidate ends here.
        length: int32 (), of the candidates.
        rules: of the search.
    """
    beam = rules.beam_size
    normalised = rules.scoring.score(candidates.log_probs, length)
    ended = tf.where(ends, normalised, NEVER)
    scores, chosen = tf.math.top_k(tf.concat([scores, ended], axis=1), beam)
    rows = tf.shape(scores)[0]
    old = tf.broadcast_to(tf.range(beam, 2 * beam), [rows, beam])
    origin = tf.concat([old, candidates.parents], axis=1)
    sources = tf.gather(origin, chosen, batch_dims=1)
    endings = tf.where(chosen < beam, rules.pad_id, rules.eos_id)
    if rules.algorithm == MARIAN:
        kept = tf.fill([rows, beam], rules.pad_id)
        added = tf.concat([kept, candidates.ids], axis=1)
        endings = tf.gather(added, chosen, batch_dims=1)
    return _Results(scores, sources, endings)


def _append(
    hypotheses: tf.Tensor, sources: tf.Tensor, ids: tf.Tensor, column: tf.Tensor
) -> tf.Tensor:
    """Copies each hypothesis from its source and writes one symbol into `column`.

    hypotheses int32 (rows, 2 * beam, width), sources and ids int32 (rows, 2 * beam).
    """
    copied = tf.gather(hypotheses, sources, batch_dims=1)
    here = tf.equal(tf.range(tf.shape(hypotheses)[2]), column)
    return tf.where(here, ids[:, :, None], copied)
