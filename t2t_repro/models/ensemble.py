"""Several models that translate as one."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import tensorflow as tf

from t2t_repro.decoding.decoder import State, StepwiseDecoder

EnsembleState: TypeAlias = tuple[Any, ...]
"""The state of every model's decoder."""


class ModelDecoder(StepwiseDecoder, Protocol):
    """The decoder of a model, or of several: one that can start by itself.

    Attributes:
        beam_size: hypotheses per sentence.
        vocab_size: V of its logits.
    """

    beam_size: int
    vocab_size: int

    def start(self, inputs: tf.Tensor) -> State:
        """Returns the state before the first step.

        Args:
            inputs: int32 (batch, source), ending in EOS, 0-padded.
        """
        ...


class EnsembleDecoder:
    """Averages the probabilities of several models at every step.

    The next symbol's probability is the arithmetic mean of what the models give it,
    as in fairseq (Marian takes the geometric mean). A search adds the logarithms of
    these means, so its scores are log probabilities of the ensemble.

    Args:
        decoders: of models over the same vocabulary, at least one.

    Raises:
        ValueError: there is none, or they differ in beam size or in the rows of
            their softmax tables.
    """

    def __init__(self, decoders: Sequence[ModelDecoder]) -> None:
        kinds = {(each.beam_size, each.vocab_size) for each in decoders}
        if len(kinds) != 1:
            raise ValueError(
                "an ensemble needs decoders of one beam size and one number of "
                f"softmax rows, not {sorted(kinds)}"
            )
        self.decoders = tuple(decoders)
        ((self.beam_size, self.vocab_size),) = kinds

    def start(self, inputs: tf.Tensor) -> EnsembleState:
        """Returns the states of all models before the first step."""
        return tuple(decoder.start(inputs) for decoder in self.decoders)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: EnsembleState
    ) -> tuple[tf.Tensor, EnsembleState]:
        """Reads one symbol per hypothesis and scores the next.

        Args:
            ids: int32 (batch, beam), the last symbols; 0 before the first.
            index: int32 (), the step, from 0.
            state: from `start` or the step before.

        Returns:
            float32 (batch, beam, V), logarithms of the mean probabilities, which are
            logits; and the state with this step in it.
        """
        log_probs, states = [], []
        for decoder, own in zip(self.decoders, state, strict=True):
            logits, own = decoder.step(ids, index, own)
            log_probs.append(tf.nn.log_softmax(logits))
            states.append(own)
        # The mean of probabilities themselves would lose those below float32's least.
        # (models, batch, beam, V) -> (batch, beam, V)
        mean = tf.reduce_logsumexp(tf.stack(log_probs), axis=0)
        return mean - tf.math.log(float(len(log_probs))), tuple(states)

    def select_beams(self, state: EnsembleState, parents: tf.Tensor) -> EnsembleState:
        """Gives hypothesis k the past of ``parents[:, k]``, int32 (batch, beam)."""
        return tuple(
            decoder.select_beams(own, parents)
            for decoder, own in zip(self.decoders, state, strict=True)
        )

    def select_sentences(self, state: EnsembleState, keep: tf.Tensor) -> EnsembleState:
        """Keeps the sentences of some rows, int32 (kept,)."""
        return tuple(
            decoder.select_sentences(own, keep)
            for decoder, own in zip(self.decoders, state, strict=True)
        )
