"""Beam searches of other programs, for models imported from them."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from t2t_repro.hub.beams import NEVER, Beams, NextLogits, Sentences, append, take
from t2t_repro.hub.sampler import BeamSearchSampler
from t2t_repro.layers.functional import Tensor
from t2t_repro.tokenizers.plain_tokenizer import EOS_ID, PAD_ID


@keras.saving.register_keras_serializable("t2t_repro")
class MarianSampler(BeamSearchSampler):
    """Marian's beam search (translator/beam_search.cpp, history.h).

    Each step keeps the best `num_beams` candidates, and each finished hypothesis
    reduces the beam by one. A hypothesis that is cut at the limit counts as finished.

    Args:
        num_beams: Number of hypotheses per sentence.
        alpha: Exponent of the length penalty ``length^alpha``, Marian's --normalize.
        never: Ids that are never generated.
        word_penalty: Subtracted from the log probability for each token.
    """

    def __init__(
        self,
        num_beams: int = 6,
        alpha: float = 1.0,
        never: Sequence[int] = (),
        word_penalty: float = 0.0,
    ) -> None:
        super().__init__(num_beams, alpha, never)
        self.word_penalty = word_penalty

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        return super().get_config() | {"word_penalty": self.word_penalty}

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks."""
        return self.num_beams

    def penalty(self, length: Tensor) -> Tensor:
        """Computes ``length^alpha``."""
        return ops.power(ops.cast(length, "float32"), self.alpha)

    def score(self, log_probs: Tensor, length: Tensor) -> Tensor:
        """Computes ``(log p - word_penalty * length) / length^alpha``."""
        words = self.word_penalty * ops.cast(length, "float32")
        return super().score(log_probs - words, length)

    def eligible(self, totals: Tensor, ends: Tensor, scores: Tensor) -> Tensor:
        """Keeps as many candidates as the beam has unfinished hypotheses."""
        places = ops.sum(ops.cast(scores == NEVER, "int32"), axis=1, keepdims=True)
        rank = ops.arange(totals.shape[1], dtype="int32")
        return ops.where(rank >= places, NEVER, totals)

    def finishing(self, ends: Tensor, length: Tensor, limits: Tensor) -> Tensor:
        """Returns the candidates that end, and all candidates at the limit."""
        return ends | (length >= limits)[:, None]

    def done(
        self, length: Tensor, limits: Tensor, log_probs: Tensor, scores: Tensor
    ) -> Tensor:
        """Returns which sentences are done, bool (batch,)."""
        if not self.word_penalty:
            return super().done(length, limits, log_probs, scores)
        # The score of a longer hypothesis may be higher.
        return (length >= limits) | (log_probs[:, 0] == NEVER)


@keras.saving.register_keras_serializable("t2t_repro")
class TransformersSampler(BeamSearchSampler):
    """Beam search of Transformers (generation/utils.py:_beam_search).

    Only the best `num_beams` candidates may finish. The search ends when `num_beams`
    finished hypotheses are at least as good as the best unfinished one. At the limit
    EOS is forced, at no cost. The length penalty is ``length^alpha``.
    """

    def penalty(self, length: Tensor) -> Tensor:
        """Computes ``length^alpha``."""
        return ops.power(ops.cast(length, "float32"), self.alpha)

    def eligible(self, totals: Tensor, ends: Tensor, scores: Tensor) -> Tensor:
        """Drops candidates that end and are not among the best `num_beams`."""
        rank = ops.arange(totals.shape[1])
        return ops.where(ends & (rank >= self.num_beams), NEVER, totals)

    def must_end(self, length: Tensor, limits: Tensor) -> Tensor:
        """Returns whether a sentence is at its limit, bool (batch, num_beams)."""
        return ops.repeat((length >= limits)[:, None], self.num_beams, axis=1)

    def done(
        self, length: Tensor, limits: Tensor, log_probs: Tensor, scores: Tensor
    ) -> Tensor:
        """Returns which sentences are done, bool (batch,)."""
        reachable = log_probs[:, 0] / self.penalty(length)
        return (length >= limits) | (scores[:, -1] >= reachable)


@keras.saving.register_keras_serializable("t2t_repro")
class OpenNMTSampler(BeamSearchSampler):
    """OpenNMT-tf's beam search (utils/decoding.py:BeamSearch).

    Finished hypotheses stay in the beam; see `decoding.algorithms.opennmt`. A sentence
    is done when its whole beam has finished, or at its limit.
    """

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks."""
        return self.num_beams

    def step(self, next: NextLogits, beams: Beams, sentences: Sentences) -> Beams:
        """Adds one token to every unfinished hypothesis.

        `beams.scores` are the log probabilities used for ranking, float32 (batch,
        num_beams); OpenNMT-tf stores them per place in the beam, not per hypothesis.
        """
        count, length = self.num_beams, beams.index
        logits, cache = self.logits(next, beams)
        past = beams.tokens[:, :count, 1:]
        had_ended = ops.any(past == EOS_ID, axis=2)
        lengths = ops.sum(ops.cast(past != PAD_ID, "int32"), axis=2)
        level = beams.scores * self.penalty(length) / self.penalty(lengths + 1)
        level = ops.where(had_ended, level, beams.log_probs)
        totals, parents, ids = self.candidates(
            logits, beams._replace(log_probs=level), sentences, had_ended
        )
        had_ended, own = (take(each, parents) for each in (had_ended, beams.log_probs))
        log_probs = ops.where(had_ended, own, totals)
        has_ended = had_ended | (ids == EOS_ID) | (log_probs == NEVER)
        done = ops.all(has_ended, axis=1) | (length >= sentences.limits)
        done = done[:, None]
        # The first hypothesis of the beam becomes the result when the sentence is done.
        is_result = done & (log_probs[:, :1] > NEVER)
        added = ops.where(had_ended, PAD_ID, ids)
        source = ops.where(is_result, parents[:, :1], count)
        ending = ops.where(is_result, added[:, :1], PAD_ID)
        return Beams(
            index=length + 1,
            tokens=append(
                beams,
                ops.concatenate([parents, source], axis=1),
                ops.concatenate([added, ending], axis=1),
            ),
            log_probs=ops.where(done, NEVER, log_probs),
            scores=ops.where(had_ended, beams.scores, totals),
            cache=sentences.select(cache, parents),
        )
