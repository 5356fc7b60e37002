"""Records the hypotheses of a beam search at every step."""

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
    """Partial or complete translation; complete ones end in EOS."""

    ids: Ids  # Token ids.
    log_prob: float  # Natural logarithm of the probability.
    score: float  # `log_prob` divided by the length penalty.


class BeamStep(NamedTuple):
    """Hypotheses after a step of the search, best first."""

    # Unfinished hypotheses; they have one token per step.
    alive: tuple[Hypothesis, ...]
    # Hypotheses that ended in this step and are among the best finished ones.
    ended: tuple[Hypothesis, ...]


class BeamTrace(NamedTuple):
    """Record of the beam search for one sentence."""

    steps: tuple[BeamStep, ...]  # One per token of the longest hypothesis.
    # Final hypotheses, best first. Those cut at the length limit do not end in EOS.
    results: tuple[Hypothesis, ...]


def trace_beam(decoder: ModelDecoder, inputs: Ids, config: DecodingConfig) -> BeamTrace:
    """Translates a sentence eagerly, and records every step of the beam search.

    Args:
        decoder: Decoder for `config.beam_size` hypotheses.
        inputs: Token ids of the sentence, ending in EOS.
        config: Settings of a beam search.

    Raises:
        ValueError: `config` enables sampling, or a constraint other than `never`.
    """
    if config.sampling or config.min_length or config.no_repeat_ngram:
        raise ValueError(
            "trace_beam supports only beam search without constraints, not sampling, "
            "min_length or no_repeat_ngram"
        )
    constraints = config.constraints()
    algorithm = config.search_algorithm(constraints)
    limit = config.longest(len(inputs))
    rows = constraints.sentence_constraints(1) if constraints else ()
    sentences = SentenceInputs(tf.constant([limit]), rows)
    recorder = _Recorder(decoder)
    state = decoder.start(tf.constant([inputs], tf.int32))
    progress = Progress(tf.constant(0), algorithm.start(sentences, limit), state)
    beam: list[Hypothesis | None] = [Hypothesis((), 0.0, 0.0)]
    finished: set[Ids] = set()
    steps = []
    while algorithm.is_open(progress.sentences).numpy().any():
        progress = algorithm.step(recorder, progress, sentences)
        log_probs = {
            before.ids: before.log_prob + recorder.log_probs[slot]
            for slot, before in enumerate(beam)
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
    """Decoder wrapper that stores the last step's `log_probs`, float32 (beam, V)."""

    def __init__(self, decoder: ModelDecoder) -> None:
        self._decoder = decoder
        self.log_probs: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Scores the next tokens, like `StepwiseDecoder.step`."""
        logits, state = self._decoder.step(ids, index, state)
        self.log_probs = tf.nn.log_softmax(logits)[0].numpy()
        return logits, state

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        """Reorders hypotheses, like `StepwiseDecoder.select_beams`."""
        return self._decoder.select_beams(state, parents)

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        """Drops sentences, like `StepwiseDecoder.select_sentences`."""
        return self._decoder.select_sentences(state, keep)


def _beam(
    progress: Progress,
    log_probs: dict[Ids, npt.NDArray[np.float32]],
    algorithm: SearchAlgorithm,
) -> list[Hypothesis | None]:
    """Returns the unfinished hypothesis in each slot of the beam, None if empty.

    The log probabilities are summed here, because the search itself does not keep them
    after its last step.

    Args:
        progress: State of the search.
        log_probs: For each hypothesis before the step, the log probabilities of its
            continuations, float32 (V,).
        algorithm: Algorithm of the search.
    """
    length = int(progress.length)
    rows = progress.sentences.hypotheses[0, : algorithm.beam_size, :length].numpy()
    beam: list[Hypothesis | None] = []
    for row in rows:
        *before, last = map(int, row)
        # The hypothesis of a greedy search has ended, or the slot is empty.
        if last in (EOS_ID, PAD_ID) or tuple(before) not in log_probs:
            beam.append(None)
            continue
        log_prob = float(log_probs[tuple(before)][last])
        score = algorithm.score(log_prob, length)
        beam.append(Hypothesis((*before, last), log_prob, score))
    return beam


def _results(progress: Progress, algorithm: SearchAlgorithm) -> tuple[Hypothesis, ...]:
    """Returns the current results of the search, best first."""
    hypotheses, scores = algorithm.results(progress.sentences)
    results = []
    for row, score in zip(hypotheses[0].numpy(), scores[0].numpy(), strict=True):
        if np.isfinite(score):
            ids = tuple(int(token) for token in row if token != PAD_ID)
            log_prob = algorithm.log_prob(float(score), len(ids))
            results.append(Hypothesis(ids, log_prob, float(score)))
    return tuple(results)
