"""The interface between a search and a model: the step function and its state."""

from typing import Any, Protocol, TypeAlias

import tensorflow as tf

PAD_ID = 0
"""Pads hypotheses and precedes their first token; never produced."""
EOS_ID = 1
"""Ends a hypothesis."""

State: TypeAlias = Any
"""A nested structure of tensors; only the decoder depends on its contents."""


class StepwiseDecoder(Protocol):
    """The step function of a model, whose state the search passes to the next step.

    Every tensor of the state keeps its rank during the search. Its dimensions may
    change (a cache grows, sentences leave), so they are unknown statically.
    """

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Computes the logits of the next tokens.

        Args:
            ids: int32 (batch, beam), the last token of each hypothesis; PAD at
                index 0.
            index: int32 (), the position of `ids`, counted from 0.
            state: State after the previous step, passed through `select_beams` if
                hypotheses moved and through `select_sentences` if sentences left.

        Returns:
            logits: float (batch, beam, vocab), with a static size of the vocabulary
                if possible.
            state: State after this step.
        """
        ...

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        """Reorders the hypotheses within each sentence.

        Args:
            state: The state, from `step`.
            parents: int32 (batch, beam), the index of the old hypothesis that each new
                hypothesis continues; several may have the same parent.
        """
        ...

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        """Drops the sentences whose search is over.

        Args:
            state: The state, from `step` or `select_beams`.
            keep: int32 (kept,), ascending indices into the batch; `kept` may be 0.
        """
        ...
