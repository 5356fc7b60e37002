"""Sampling as TensorFlow graph code: every symbol is drawn, not searched.

The random numbers are a function of a seed and a key of the sentence, so that what is
drawn for it does not depend on its batch, up to the rounding of the model's logits.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.constraints import Constraints, SentenceConstraints
from t2t_repro.decoding.decode_loop import (
    BeamSearchResult,
    Progress,
    as_result,
    decode_batch,
)
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.multinomial import draw, sentence_uniforms


def sample(
    decoder: StepwiseDecoder,
    state: State,
    *,
    batch_size: int | tf.Tensor,
    max_lengths: tf.Tensor,
    seed: tf.Tensor,
    keys: tf.Tensor,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    constraints: Constraints | None = None,
    start_id: int = 0,
    eos_id: int = 1,
    pad_id: int = 0,
    compact_at: float | None = 0.25,
) -> BeamSearchResult:
    """Draws translations of a batch of sentences, symbol by symbol.

    Constraints come first, then temperature, top_k and top_p, each on what the one
    before has left. The score is always the plain log probability under the model:
    temperature 1, the whole vocabulary, EOS counted, no length penalty.

    Args:
        decoder: scores the next symbols.
        state: the decoder's, before the first step, for `samples` hypotheses.
        batch_size: sentences.
        max_lengths: int32 (batch,), the most symbols of each sentence, EOS counted.
        seed: int32 (2,); another seed gives other translations.
        keys: int32 (batch,), what tells sentences apart: the same seed, key and limit
            give the same random numbers.
        samples: hypotheses per sentence, the decoder's `beam`.
        temperature: logits are divided by it; above 0.
        top_k: see `draw.draw`; 0 for all symbols.
        top_p: likewise; 1 for all.
        constraints: what else is asked of the hypotheses.
        start_id: the symbol before the first.
        eos_id: the symbol that ends a translation.
        pad_id: pads the result; never drawn.
        compact_at: finished sentences leave the batch when they are this share of it;
            None keeps them.

    Raises:
        ValueError: samples, temperature, top_k or top_p is out of range.
    """
    rules = SamplingRules(
        samples,
        temperature,
        top_k,
        top_p,
        eos_id,
        pad_id,
        constraints or Constraints(),
    )
    limits = tf.broadcast_to(tf.cast(max_lengths, tf.int32), [batch_size])
    method = SamplingMethod(decoder, rules)
    asked = SamplingInputs(
        limits=limits,
        sentence_constraints=rules.constraints.sentence_constraints(batch_size, pad_id),
        uniforms=sentence_uniforms(seed, tf.cast(keys, tf.int32), limits, samples),
    )
    progress = method.start(state, asked, start_id)
    ids, scores, length = decode_batch(method, progress, asked, compact_at)
    return as_result(ids[:, :, :length], scores, pad_id)


@dataclass(frozen=True)
class SamplingRules:
    """What stays the same through all draws; the fields are `sample`'s."""

    samples: int
    temperature: float
    top_k: int
    top_p: float
    eos_id: int
    pad_id: int
    constraints: Constraints

    def __post_init__(self) -> None:
        """Refuses what nothing can be drawn from."""
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, must be at least 1")
        if not self.temperature > 0:
            raise ValueError(
                f"temperature is {self.temperature}, must be above 0; for the most "
                "probable symbol at each step search with beam_size 1"
            )
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k}, must be 0 (all) or more")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}, must be above 0 and at most 1")


class SamplingInputs(NamedTuple):
    """What the caller wants of each sentence.

    Attributes:
        limits: int32 (rows,), the most symbols, EOS counted.
        sentence_constraints: of the constraints.
        uniforms: float32 (rows, samples, steps), one random number a draw.
    """

    limits: tf.Tensor
    sentence_constraints: SentenceConstraints
    uniforms: tf.Tensor


class Samples(NamedTuple):
    """The hypotheses of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, samples), PAD behind the end.
        unfinished: bool (rows, samples).
        log_probs: float32 (rows, samples); -inf if nothing was left to draw.
        hypotheses: int32 (rows, samples, width).
    """

    last_ids: tf.Tensor
    unfinished: tf.Tensor
    log_probs: tf.Tensor
    hypotheses: tf.Tensor


@dataclass(frozen=True)
class SamplingMethod:
    """Sampling, as `batch.decode_batch` runs it."""

    decoder: StepwiseDecoder
    rules: SamplingRules

    def start(self, state: State, asked: SamplingInputs, start_id: int) -> Progress:
        """Returns the empty hypotheses; at limit 0 they are the result."""
        rows, _, width = tf.unstack(tf.shape(asked.uniforms))
        places = [rows, self.rules.samples]
        unfinished = tf.broadcast_to((asked.limits > 0)[:, None], places)
        samples = Samples(
            last_ids=tf.fill(places, start_id),
            unfinished=unfinished,
            log_probs=tf.zeros(places),
            hypotheses=tf.fill([*places, width], self.rules.pad_id),
        )
        return Progress(tf.constant(0), _sentences_of(unfinished), samples, state)

    def step(self, progress: Progress, asked: SamplingInputs) -> Progress:
        """Draws the next symbol of every hypothesis that has not ended."""
        samples, rules = progress.sentences, self.rules
        logits, state = self.decoder.step(
            samples.last_ids, progress.length, progress.state
        )
        drawn, log_probs = _draw_next(logits, progress, asked, rules)
        length = progress.length + 1
        ids = tf.where(samples.unfinished, drawn, rules.pad_id)
        log_probs = samples.log_probs + tf.where(samples.unfinished, log_probs, 0.0)
        unfinished = (
            samples.unfinished
            & tf.not_equal(drawn, rules.eos_id)
            & tf.not_equal(log_probs, NEVER)
            & (length < asked.limits)[:, None]
        )
        here = tf.equal(tf.range(tf.shape(samples.hypotheses)[2]), progress.length)
        return Progress(
            length=length,
            searching=_sentences_of(unfinished),
            sentences=Samples(
                last_ids=ids,
                unfinished=unfinished,
                log_probs=log_probs,
                hypotheses=tf.where(here, ids[:, :, None], samples.hypotheses),
            ),
            state=state,
        )

    def is_open(self, sentences: Samples) -> tf.Tensor:
        """Which sentences have unfinished hypotheses: bool (rows,)."""
        return tf.reduce_any(sentences.unfinished, axis=1)

    def results(self, sentences: Samples) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns what was drawn, and its log probabilities."""
        return sentences.hypotheses, sentences.log_probs


def _draw_next(
    logits: tf.Tensor, progress: Progress, asked: SamplingInputs, rules: SamplingRules
) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws one symbol for every hypothesis by logits (rows, samples, vocab).

    Returns:
        ids, int32 (rows, samples), and their log probabilities under the model,
        float32 (rows, samples), -inf where every symbol is forbidden.
    """
    logits = tf.cast(logits, tf.float32)
    vocab = logits.shape[2] or tf.shape(logits)[2]
    forbidden = rules.constraints.forbidden(
        asked.sentence_constraints,
        progress.sentences.hypotheses,
        progress.length,
        vocab,
        eos_id=rules.eos_id,
        pad_id=rules.pad_id,
    )
    allowed = tf.where(forbidden, NEVER, logits)
    uniforms = tf.gather(asked.uniforms, progress.length, axis=2)
    # (rows, samples, vocab) -> (rows * samples, vocab)
    flat = tf.reshape(allowed, [-1, vocab])
    drawn = draw(
        flat,
        tf.reshape(uniforms, [-1]),
        temperature=rules.temperature,
        top_k=rules.top_k,
        top_p=rules.top_p,
    )
    chosen = tf.gather(flat, drawn, batch_dims=1)
    normaliser = tf.reduce_logsumexp(tf.reshape(logits, [-1, vocab]), axis=1)
    # (rows * samples,) -> (rows, samples)
    shape = tf.shape(uniforms)
    return tf.reshape(drawn, shape), tf.reshape(chosen - normaliser, shape)


def _sentences_of(unfinished: tf.Tensor) -> tf.Tensor:
    """Counts the sentences with unfinished hypotheses: int32 ()."""
    return tf.math.count_nonzero(tf.reduce_any(unfinished, axis=1), dtype=tf.int32)
