"""Base class of the beam search algorithms: settings and scores."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import Method, Rows
from t2t_repro.decoding.decoder import PAD_ID
from t2t_repro.decoding.stopping import length_penalty


class SentenceInputs(NamedTuple):
    """The inputs of a search for each sentence.

    Attributes:
        limits: int32 (rows,), the maximum number of tokens, EOS included.
        sentence_constraints: `SentenceConstraints`, or () without constraints.
    """

    limits: tf.Tensor
    sentence_constraints: Rows


@dataclass(frozen=True)
class SearchAlgorithm(Method):
    """Base class of the algorithms: `decode_batch` runs one as its `Method`.

    Attributes:
        beam_size: Number of hypotheses per sentence; 1 is greedy search.
        alpha: Exponent of the length penalty, at least 0.
        nbest: Number of hypotheses that must be final before the search ends.
        word_penalty: Subtracted from the log probability for each token.
        constraints: Constraints on the hypotheses; None (fastest): no constraints.
    """

    beam_size: int
    alpha: float
    nbest: int = 1
    word_penalty: float = 0.0
    constraints: Constraints | None = None

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks."""
        return self.beam_size

    def penalty(self, length: Any) -> Any:
        """Computes the length penalty; argument and result as in `length_penalty`."""
        return length_penalty(length, self.alpha)

    def score(self, log_prob: Any, length: Any) -> Any:
        """Converts log probabilities to scores: numbers, arrays or tensors."""
        if self.word_penalty:
            words = tf.cast(length, tf.float32) if tf.is_tensor(length) else length
            log_prob -= self.word_penalty * words
        return log_prob / self.penalty(length)

    def log_prob(self, score: Any, length: Any) -> Any:
        """Converts scores to log probabilities: numbers or NumPy arrays."""
        return score * self.penalty(length) + self.word_penalty * length

    @property
    def constrained(self) -> Any:
        """The `T2TSearch` to which `ConstrainedSearch` adds lexical constraints."""
        return self

    def limits(self, limits: tf.Tensor) -> tf.Tensor:
        """Returns the length limits that replace `limits`: int32 (batch,)."""
        return limits

    def forbidden(
        self,
        inputs: SentenceInputs,
        hypotheses: tf.Tensor,
        length: tf.Tensor,
        logits: tf.Tensor,
    ) -> tf.Tensor | None:
        """Returns the forbidden next tokens, in the form that `best_candidates` takes.

        Args:
            inputs: Inputs of the sentences.
            hypotheses: int32 (rows, beam, width), unfinished.
            length: int32 (), their length.
            logits: float (rows, beam, vocab), of which only the shape is read.
        """
        if self.constraints is None:
            return tf.fill([tf.shape(hypotheses)[0], 1], PAD_ID)
        rows = inputs.sentence_constraints
        if self.constraints.only_tokens:
            return self.constraints.forbidden_ids(rows, length)
        return self.constraints.forbidden(rows, hypotheses, length, logits)
