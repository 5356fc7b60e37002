"""Beam search of the paper (section 6.1) as a keras-hub sampler."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
from keras import ops

from t2t_repro.hub.beams import (
    NEVER,
    Beams,
    NextLogits,
    Sentences,
    append,
    select_rows,
    take,
)
from t2t_repro.layers.functional import Tensor
from t2t_repro.tokenizers.plain_tokenizer import EOS_ID, PAD_ID


@keras.saving.register_keras_serializable("t2t_repro")
class BeamSearchSampler(keras_hub.samplers.Sampler):
    """Beam search with the length penalty of Wu et al. 2016 (arXiv:1609.08144).

    It is the search of `decoding.algorithms.t2t.T2TSearch` in ``keras.ops``: a sentence
    is done when no unfinished hypothesis can exceed the best finished one (see
    `decoding.stopping`), or at its own limit. A translation is therefore independent of
    the other sentences of its batch.

    Args:
        num_beams: Number of hypotheses per sentence; 1 is greedy search.
        alpha: Exponent of the length penalty, at least 0.
        never: Ids that are never generated; PAD is always one of them.

    References:
        Attention Is All You Need, section 6.1; tensor2tensor
        utils/beam_search.py:beam_search.
    """

    def __init__(
        self, num_beams: int = 4, alpha: float = 0.6, never: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.num_beams, self.alpha, self.never = num_beams, alpha, tuple(never)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        return {
            "num_beams": self.num_beams,
            "alpha": self.alpha,
            "never": list(self.never),
        }

    def penalty(self, length: Tensor) -> Tensor:
        """Computes the length penalty ``((5 + length) / 6)^alpha``.

        Args:
            length: int32, number of tokens, EOS included.

        Returns:
            float32, with the shape of `length`.
        """
        return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, self.alpha)

    @property
    def num_candidates(self) -> int:
        """Number of continuations per sentence that each step ranks."""
        return 1 if self.num_beams == 1 else 2 * self.num_beams

    def score(self, log_probs: Tensor, length: Tensor) -> Tensor:
        """Computes scores from float32 log probabilities and int32 lengths."""
        return log_probs / self.penalty(length)

    def eligible(self, totals: Tensor, ends: Tensor, scores: Tensor) -> Tensor:
        """Returns `totals`, with -inf for candidates that the search drops.

        Args:
            totals: float32 (batch, candidates), log probabilities.
            ends: bool (batch, candidates), whether they end.
            scores: float32 (batch, num_beams), of the finished hypotheses.
        """
        return totals

    def finishing(self, ends: Tensor, length: Tensor, limits: Tensor) -> Tensor:
        """Returns which candidates compete for the result: bool (batch, candidates)."""
        return ends

    def must_end(self, length: Tensor, limits: Tensor) -> Tensor | None:
        """Returns where EOS is forced, at no cost, bool (batch, num_beams), or None."""
        return None

    def done(
        self, length: Tensor, limits: Tensor, log_probs: Tensor, scores: Tensor
    ) -> Tensor:
        """Returns which sentences are done, bool (batch,).

        Args:
            length: int32 (), of the hypotheses.
            limits: int32 (batch,).
            log_probs: float32 (batch, num_beams), of unfinished hypotheses, best first.
            scores: float32 (batch, num_beams), of finished hypotheses, best first.
        """
        reachable = log_probs[:, 0] / self.penalty(limits)
        return (length >= limits) | (scores[:, 0] >= reachable)

    def __call__(
        self,
        next: NextLogits,
        prompt: Tensor,
        cache: Any = None,
        index: Tensor | int = 1,
        mask: Tensor | None = None,
        stop_token_ids: Sequence[int] | None = None,
        hidden_states: Tensor | None = None,
        model: keras.Model | None = None,
        limits: Tensor | None = None,
        select: Callable[[Any, Tensor], Any] | None = None,
    ) -> Tensor:
        """Searches for the best hypothesis of each sentence.

        Args:
            next: Computes the logits of the next tokens.
            prompt: int32 (batch, width): the start token, then the prefix.
            cache: Nested structure of tensors (batch, ...), before the first step.
            index: int32 (), the position of the first token to generate.
            mask: bool (batch, width), true where `prompt` prescribes the token; None:
                nowhere.
            stop_token_ids: Ids that end a hypothesis; None: none does.
            hidden_states: Not used.
            model: Model whose variables `next` reads.
            limits: int32 (batch,), the maximum number of tokens of each sentence, EOS
                included; None: as many as the prompt has positions after the first.
                The prompt may have fewer positions.
            select: Function that reorders a cache for all hypotheses, given the parent
                of each, int32 (batch, num_beams); None: the rows of the cache are
                copied for each hypothesis, and reordered.

        Returns:
            int32 (batch, width): the start token and the hypothesis, 0-padded. Only the
            start token if the limit is 0, or if the sentence is not done at the width.
        """
        batch, width = prompt.shape
        if limits is None:
            limits = ops.full((batch,), width - 1, "int32")
        first = ops.convert_to_tensor([[0.0] + [NEVER] * (self.num_beams - 1)])
        is_start = ops.arange(width) == 0
        tokens = ops.where(is_start, prompt, PAD_ID)[:, None]
        if select is None:
            select = select_rows
            cache = keras.tree.map_structure(
                lambda each: ops.repeat(each, self.num_beams, axis=0),
                () if cache is None else cache,
            )
        sentences = Sentences(
            prompt=prompt,
            mask=ops.cast(ops.zeros_like(prompt) if mask is None else mask, "bool"),
            limits=limits,
            stops=ops.convert_to_tensor(list(stop_token_ids or ()), "int32"),
            select=select,
        )
        beams = Beams(
            index=ops.convert_to_tensor(index, "int32"),
            tokens=ops.tile(tokens, (1, self.num_beams + 1, 1)),
            log_probs=ops.where(ops.expand_dims(limits > 0, 1), first, NEVER),
            scores=ops.full((batch, self.num_beams), NEVER, "float32"),
            cache=cache,
        )

        def is_open(*state: Any) -> Tensor:
            beams = Beams(*state)
            return ops.any(beams.log_probs > NEVER) & (beams.index < width)

        def run_step(*state: Any) -> tuple[Any, ...]:
            return tuple(self.step(next, Beams(*state), sentences))

        beams = Beams(
            *self.run_loop(is_open, run_step, model=model, loop_vars=tuple(beams))
        )
        is_done = ops.all(beams.log_probs == NEVER, axis=1, keepdims=True)
        return ops.where(is_done | is_start, beams.tokens[:, self.num_beams], PAD_ID)

    def step(self, next: NextLogits, beams: Beams, sentences: Sentences) -> Beams:
        """Adds one token to every hypothesis."""
        count, length, limits = self.num_beams, beams.index, sentences.limits
        logits, cache = self.logits(next, beams)
        must_end = self.must_end(length, limits)
        totals, parents, ids = self.candidates(logits, beams, sentences, must_end)
        ends = ops.any(ids[:, :, None] == sentences.stops, axis=2)
        totals = self.eligible(totals, ends, beams.scores)
        log_probs, chosen = ops.top_k(ops.where(ends, NEVER, totals), count)
        alive_parents, alive_ids = (take(each, chosen) for each in (parents, ids))
        # (batch, candidates): scores of the candidates that end
        ended = self.finishing(ends, length, limits)
        ended = ops.where(ended, self.score(totals, length), NEVER)
        scores, _ = ops.top_k(ops.concatenate([beams.scores, ended], axis=1), count)
        best = ops.argmax(ended, axis=1)[:, None]
        is_better = take(ended, best) > beams.scores[:, :1]
        done = self.done(length, limits, log_probs, scores)[:, None]
        # If none has finished by the limit, the best unfinished one is the result.
        is_cut = done & (scores[:, :1] == NEVER) & (log_probs[:, :1] > NEVER)
        scores = ops.where(is_cut, self.score(log_probs, length), scores)
        source = ops.where(is_better, take(parents, best), count)
        source = ops.where(is_cut, alive_parents[:, :1], source)
        ending = ops.where(is_better, take(ids, best), PAD_ID)
        ending = ops.where(is_cut, alive_ids[:, :1], ending)
        return Beams(
            index=length + 1,
            tokens=append(
                beams,
                ops.concatenate([alive_parents, source], axis=1),
                ops.concatenate([alive_ids, ending], axis=1),
            ),
            log_probs=ops.where(done, NEVER, log_probs),
            scores=scores,
            cache=sentences.select(cache, alive_parents),
        )

    def logits(self, next: NextLogits, beams: Beams) -> tuple[Tensor, Any]:
        """Computes the logits, float (batch * num_beams, V), and the new cache."""
        batch, _, width = beams.tokens.shape
        rows = beams.tokens[:, : self.num_beams]
        rows = ops.reshape(rows, (batch * self.num_beams, width))
        logits, _, cache = next(rows, beams.cache, beams.index)
        return logits, cache

    def candidates(
        self,
        logits: Tensor,
        beams: Beams,
        sentences: Sentences,
        must_end: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the best continuations of each sentence, best first.

        Args:
            logits: float (batch * num_beams, V).
            beams: State of the search.
            sentences: Constants of the search.
            must_end: bool (batch, num_beams), true where EOS is the only continuation,
                with log probability 0; None: nowhere.

        Returns:
            Their log probabilities, float32 (batch, candidates), the hypotheses that
            they continue, and their last tokens, int32 (batch, candidates).
        """
        logits = ops.cast(logits, "float32")
        count, batch = self.num_beams, beams.log_probs.shape[0]
        columns = min(self.num_candidates + 1 + len(self.never), logits.shape[-1])
        best, ids = ops.top_k(logits, columns)
        ids, total = ops.cast(ids, "int32"), ops.logsumexp(logits, 1, keepdims=True)
        steps = best - total
        for token in (PAD_ID, *self.never):
            steps = ops.where(ids == token, NEVER, steps)
        # A prefix prescribes the continuation.
        token, is_given = (
            ops.repeat(ops.take(each, beams.index, axis=1), count, axis=0)[:, None]
            for each in (sentences.prompt, sentences.mask)
        )
        given = ops.take_along_axis(logits, token, axis=1) - total
        if must_end is not None:
            must_end = ops.reshape(must_end, (batch * count, 1))
            token = ops.where(must_end, EOS_ID, token)
            given = ops.where(must_end, 0.0, given)
            is_given |= must_end
        given = ops.where(ops.arange(columns) == 0, given, NEVER)
        steps, ids = ops.where(is_given, given, steps), ops.where(is_given, token, ids)
        # (batch * beams, columns) -> (batch, beams * columns)
        steps = ops.reshape(steps, (batch, count, columns))
        totals = beams.log_probs[:, :, None] + steps
        totals = ops.reshape(totals, (batch, count * columns))
        totals, position = ops.top_k(totals, self.num_candidates)
        position = ops.cast(position, "int32")
        ids = take(ops.reshape(ids, (batch, count * columns)), position)
        return totals, position // columns, ids
