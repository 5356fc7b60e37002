"""The interface between a search and a model: the step function and its state."""

from typing import Any, Protocol, TypeAlias

import tensorflow as tf

PAD_ID = 0
"""Pads hypotheses and precedes their first token; never produced."""
EOS_ID = 1
"""Ends a hypothesis."""

State: TypeAlias = Any
"""A nested structure of tensors that only the decoder itself looks into."""


class StepwiseDecoder(Protocol):
    """The step function of a model, cached in a state that the search passes on.

    Every tensor of the state keeps its rank through the search; its dimensions may
    change (a cache may grow, sentences may leave), so they are unknown statically.
    """

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Scores the tokens that may follow.

        Args:
            ids: int32 (batch, beam), the token that each hypothesis ends in; PAD at
                index 0.
            index: int32 (), the position of `ids`, counted from 0.
            state: the last step's, through `select_beams` if hypotheses moved and
                through `select_sentences` if sentences left.

        Returns:
            logits: float (batch, beam, vocab), the vocabulary's size known statically
                where possible.
            state: with this position added.
        """
        ...

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        """Reorders the hypotheses within each sentence.

        Args:
            state: as returned by `step`.
            parents: int32 (batch, beam), the old hypothesis that each new one
                continues; several may continue the same one.
        """
        ...

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        """Drops the sentences whose search is over.

        Args:
            state: as returned by `step` or `select_beams`.
            keep: int32 (kept,), ascending indices into the batch; `kept` may be 0.
        """
        ...
