"""Records the hypotheses of a beam search at every step, and its results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm, SentenceInputs
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import Progress
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, State
from t2t_repro.models.ensemble import ModelDecoder

Ids = tuple[int, ...]


class Hypothesis(NamedTuple):
    """The beginning of a translation, or a whole one, which ends in EOS."""

    ids: Ids  # Its tokens.
    log_prob: float  # Natural logarithm of its probability.
    score: float  # `log_prob` over the length penalty.


class BeamStep(NamedTuple):
    """The hypotheses after a step of the search, best first."""

    # Those that may be continued; they have a token for each step.
    alive: tuple[Hypothesis, ...]
    # Those that took EOS in this step and are among the best finished.
    ended: tuple[Hypothesis, ...]


class BeamTrace(NamedTuple):
    """A beam search of one sentence."""

    steps: tuple[BeamStep, ...]  # One for each token of the longest hypothesis.
    # Best first. Hypotheses cut at the sentence's limit have no EOS.
    results: tuple[Hypothesis, ...]


def trace_beam(decoder: ModelDecoder, inputs: Ids, config: DecodingConfig) -> BeamTrace:
    """Translates a sentence eagerly, and records every step of the beam search.

    Args:
        decoder: Decoder for `config.beam_size` hypotheses.
        inputs: Token ids of the sentence, ending in EOS.
        config: Settings of a beam search.

    Raises:
        ValueError: `config` has sampling or constraints other than `never`.
    """
    if config.sampling or config.min_length or config.no_repeat_ngram:
        raise ValueError("only a beam search without constraints is traced")
    constraints = config.constraints()
    algorithm = config.search_algorithm(constraints)
    limit = config.longest(len(inputs))
    rows = constraints.sentence_constraints(1) if constraints else ()
    sentences = SentenceInputs(tf.constant([limit]), rows)
    recorder = _Recorder(decoder)
    state = decoder.start(tf.constant([inputs], tf.int32))
    progress = algorithm.start(state, sentences, limit)
    beam: list[Hypothesis | None] = [Hypothesis((), 0.0, 0.0)]
    finished: set[Ids] = set()
    steps = []
    while int(progress.searching):
        progress = algorithm.step(recorder, progress, sentences)
        log_probs = {
            before.ids: before.log_prob + recorder.log_probs[place]
            for place, before in enumerate(beam)
            if before is not None
        }
        results = _results(progress, algorithm)
        new = (each for each in results if each.ids not in finished)
        ended = tuple(each for each in new if each.ids[-1] == EOS_ID)
        finished.update(each.ids for each in ended)
        beam = _beam(progress, log_probs, algorithm)
        steps.append(BeamStep(tuple(filter(None, beam)), ended))
    return BeamTrace(tuple(steps), results)


class _Recorder:
    """A decoder that keeps its last step's `log_probs`, float32 (beam, V)."""

    def __init__(self, decoder: ModelDecoder) -> None:
        self._decoder = decoder
        self.log_probs: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Scores the next tokens, as `Decoder.step`."""
        logits, state = self._decoder.step(ids, index, state)
        self.log_probs = tf.nn.log_softmax(logits)[0].numpy()
        return logits, state

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        """Reorders hypotheses, as `Decoder.select_beams`."""
        return self._decoder.select_beams(state, parents)

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        """Drops sentences, as `Decoder.select_sentences`."""
        return self._decoder.select_sentences(state, keep)


def _beam(
    progress: Progress,
    log_probs: dict[Ids, npt.NDArray[np.float32]],
    algorithm: SearchAlgorithm,
) -> list[Hypothesis | None]:
    """Returns the hypothesis that may be continued at each place of the beam, or None.

    `log_probs`: hypothesis before the step -> those of its continuations, float32 (V,).
    The search drops log probabilities with its last step, so they are added up here.
    """
    length = int(progress.length)
    rows = progress.sentences.hypotheses[0, : algorithm.beam_size, :length].numpy()
    beam: list[Hypothesis | None] = []
    for row in rows:
        *before, last = map(int, row)
        # A greedy search that has ended, and places that nothing fills.
        if last in (EOS_ID, PAD_ID) or tuple(before) not in log_probs:
            beam.append(None)
            continue
        log_prob = float(log_probs[tuple(before)][last])
        score = algorithm.score(log_prob, length)
        beam.append(Hypothesis((*before, last), log_prob, score))
    return beam


def _results(progress: Progress, algorithm: SearchAlgorithm) -> tuple[Hypothesis, ...]:
    """Returns the result so far, best first."""
    hypotheses, scores = algorithm.results(progress.sentences)
    results = []
    for row, score in zip(hypotheses[0].numpy(), scores[0].numpy(), strict=True):
        if np.isfinite(score):
            ids = tuple(int(token) for token in row if token != PAD_ID)
            log_prob = algorithm.log_prob(float(score), len(ids))
            results.append(Hypothesis(ids, log_prob, float(score)))
    return tuple(results)
