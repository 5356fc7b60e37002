"""What a beam search kept at every step, and what it found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.decoding.beam_step import BeamMethod, Beams, Rules, SentenceInputs
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import State
from t2t_repro.decoding.stopping import Scoring
from t2t_repro.models.ensemble import ModelDecoder
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID

Ids = tuple[int, ...]

_START_ID = 0


class Hypothesis(NamedTuple):
    """The beginning of a translation, or a whole one, which ends in EOS."""

    ids: Ids  # Its symbols.
    log_prob: float  # Natural logarithm of its probability.
    score: float  # `log_prob` over the length penalty.


class BeamStep(NamedTuple):
    """The hypotheses after a step of the search, best first."""

    # Those that may be continued; they have a symbol for each step.
    alive: tuple[Hypothesis, ...]
    # Those that took EOS in this step and are among the best finished.
    ended: tuple[Hypothesis, ...]


class BeamTrace(NamedTuple):
    """A beam search of one sentence."""

    steps: tuple[BeamStep, ...]  # One for each symbol of the longest hypothesis.
    # Best first. One that is cut at the sentence's limit has no EOS.
    results: tuple[Hypothesis, ...]


def trace_beam(decoder: ModelDecoder, inputs: Ids, search: DecodingConfig) -> BeamTrace:
    """Translates a sentence by `BeamMethod`, eagerly, and records every step.

    `decoder` is for `search.beam_size` hypotheses; `inputs` end in EOS. A search that
    is no beam search, or has constraints, is a ValueError.
    """
    if search.sampling or search.min_length or search.no_repeat_ngram:
        raise ValueError("only a beam search without constraints is traced")
    constraints = search.constraints()
    rules = Rules(
        search.beam_size,
        search.alpha,
        search.nbest,
        EOS_ID,
        PAD_ID,
        tensor2tensor=False,
        constraints=constraints,
        algorithm=search.algorithm,
        word_penalty=search.word_penalty,
    )
    recorder = _Recorder(decoder)
    method = BeamMethod(recorder, rules)
    limit = search.longest(len(inputs))
    sentence_constraints = (
        constraints.sentence_constraints(1, PAD_ID) if constraints else ()
    )
    asked = SentenceInputs(tf.constant([limit]), sentence_constraints)
    state = decoder.start(tf.constant([inputs], tf.int32))
    progress = method.start(state, asked.limits, limit, _START_ID)
    alive: tuple[Hypothesis, ...] = (Hypothesis((), 0.0, 0.0),)
    known: set[Ids] = set()
    steps = []
    while int(progress.searching):
        progress = method.step(progress, asked)
        log_probs = {
            before.ids: before.log_prob + recorder.log_probs[place]
            for place, before in enumerate(alive)
        }
        found = _results(progress, search.scoring)
        ended = tuple(
            each for each in found if each.ids[-1] == EOS_ID and each.ids not in known
        )
        known.update(each.ids for each in ended)
        alive = _alive(progress, log_probs, search.scoring)
        steps.append(BeamStep(alive, ended))
    return BeamTrace(tuple(steps), found)


class _Recorder:
    """A decoder that keeps its last step's `log_probs`, float32 (beam, V)."""

    def __init__(self, decoder: ModelDecoder) -> None:
        self._decoder = decoder
        self.log_probs: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Scores the next symbols, as `Decoder.step`."""
        logits, state = self._decoder.step(ids, index, state)
        self.log_probs = tf.nn.log_softmax(logits)[0].numpy()
        return logits, state

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        """Reorders hypotheses, as `Decoder.select_beams`."""
        return self._decoder.select_beams(state, parents)

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        """Drops sentences, as `Decoder.select_sentences`."""
        return self._decoder.select_sentences(state, keep)


def _alive(
    progress: Progress, log_probs: dict[Ids, npt.NDArray[np.float32]], scoring: Scoring
) -> tuple[Hypothesis, ...]:
    """Returns the hypotheses that may be continued after a step.

    `log_probs`: hypothesis before the step -> those of its continuations, float32 (V,).
    The search drops log probabilities with its last step, so they are added up here.
    """
    beams: Beams = progress.sentences
    length = int(progress.length)
    rows = beams.hypotheses[0, : beams.last_ids.shape[1], :length].numpy()
    found = []
    for row in rows:
        *before, last = map(int, row)
        # A greedy search that has ended, and places that nothing fills.
        if last in (EOS_ID, PAD_ID) or tuple(before) not in log_probs:
            continue
        log_prob = float(log_probs[tuple(before)][last])
        score = scoring.score(log_prob, length)
        found.append(Hypothesis((*before, last), log_prob, score))
    return tuple(found)


def _results(progress: Progress, scoring: Scoring) -> tuple[Hypothesis, ...]:
    """Returns the result so far, best first."""
    beams: Beams = progress.sentences
    scores = beams.scores[0].numpy()
    found = []
    for row, score in zip(
        beams.hypotheses[0, len(scores) :].numpy(), scores, strict=True
    ):
        if np.isfinite(score):
            ids = tuple(int(symbol) for symbol in row if symbol != PAD_ID)
            log_prob = scoring.log_prob(float(score), len(ids))
            found.append(Hypothesis(ids, log_prob, float(score)))
    return tuple(found)
