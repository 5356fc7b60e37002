"""Ensembles: several models that translate together."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import tensorflow as tf

from t2t_repro.decoding.decoder import State, StepwiseDecoder

EnsembleState: TypeAlias = tuple[Any, ...]
"""The states of all decoders."""


class ModelDecoder(StepwiseDecoder, Protocol):
    """Decoder of a model or an ensemble that can also create its first state.

    Attributes:
        beam_size: Number of hypotheses per sentence.
        vocab_size: Number of logits, V.
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

    The probability of the next token is the arithmetic mean over the models, as in
    fairseq (Marian uses the geometric mean). Beam search adds the logarithms of these
    means, so its scores are log probabilities of the ensemble.

    Args:
        decoders: At least one decoder; all models have the same vocabulary.

    Raises:
        ValueError: `decoders` is empty, or the decoders differ in beam size or in the
            number of rows of their softmax tables.
    """

    def __init__(self, decoders: Sequence[ModelDecoder]) -> None:
        sizes = {(each.beam_size, each.vocab_size) for each in decoders}
        if len(sizes) != 1:
            raise ValueError(
                "an ensemble needs decoders with equal beam sizes and numbers of "
                f"softmax rows, not {sorted(sizes)}"
            )
        self.decoders = tuple(decoders)
        ((self.beam_size, self.vocab_size),) = sizes

    def start(self, inputs: tf.Tensor) -> EnsembleState:
        """Returns the states of all models before the first step."""
        return tuple(decoder.start(inputs) for decoder in self.decoders)

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: EnsembleState
    ) -> tuple[tf.Tensor, EnsembleState]:
        """Reads one token per hypothesis and scores the next.

        Args:
            ids: int32 (batch, beam), the last tokens; 0 at the first step.
            index: int32 (), step number, from 0.
            state: State from `start` or the previous step.

        Returns:
            Logarithms of the mean probabilities, float32 (batch, beam, V), which serve
            as logits, and the new state.
        """
        log_probs, states = [], []
        for decoder, model_state in zip(self.decoders, state, strict=True):
            logits, model_state = decoder.step(ids, index, model_state)
            log_probs.append(tf.nn.log_softmax(logits))
            states.append(model_state)
        # Averaging in the log domain keeps probabilities that float32 rounds to 0.
        # (models, batch, beam, V) -> (batch, beam, V)
        mean = tf.reduce_logsumexp(tf.stack(log_probs), axis=0)
        return mean - tf.math.log(float(len(log_probs))), tuple(states)

    def select_beams(self, state: EnsembleState, parents: tf.Tensor) -> EnsembleState:
        """Gives hypothesis k the state of ``parents[:, k]``, int32 (batch, beam)."""
        return tuple(
            decoder.select_beams(model_state, parents)
            for decoder, model_state in zip(self.decoders, state, strict=True)
        )

    def select_sentences(self, state: EnsembleState, keep: tf.Tensor) -> EnsembleState:
        """Selects the sentences in the given rows, int32 (selected,)."""
        return tuple(
            decoder.select_sentences(model_state, keep)
            for decoder, model_state in zip(self.decoders, state, strict=True)
        )
