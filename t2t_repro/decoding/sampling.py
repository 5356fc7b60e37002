"""Sampling as TensorFlow graph code: tokens are drawn at random, without a search.

The random numbers are a function of a seed and a key of the sentence, so that its
samples do not depend on its batch, up to the rounding of the model's logits.
"""

from dataclasses import dataclass
from typing import NamedTuple

import tensorflow as tf

from t2t_repro.decoding.candidates import NEVER
from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.decoding.constraints import Constraints, SentenceConstraints
from t2t_repro.decoding.decode_loop import Progress, Search
from t2t_repro.decoding.decoder import EOS_ID, PAD_ID, StepwiseDecoder
from t2t_repro.decoding.multinomial import draw, sentence_uniforms

# Base of the polynomial hash of a sentence; odd, so that every token matters.
_HASH_BASE = 0x5851F42D4C957F2D
_LARGEST_KEY = 2**31 - 1


def sampling_search(
    config: DecodingConfig,
    limits: tf.Tensor,
    keys: tf.Tensor,
    constraints: Constraints | None = None,
) -> Search:
    """Returns the sampler for a batch of sentences, for `decode_batch`.

    Constraints, temperature, top_k and top_p are applied in this order. The score is
    always the log probability under the model: temperature 1, the whole vocabulary, EOS
    included, without length penalty.

    Args:
        config: Settings, of which `sampling` and `nbest` are used.
        limits: int32 (batch,), the maximum number of tokens, EOS included.
        keys: int32 (batch,), identify the sentences: equal seeds, keys and limits give
            equal random numbers.
        constraints: Constraints on the hypotheses.
    """
    settings, constraints = config.sampling or Sampling(), constraints or Constraints()
    inputs = SamplingInputs(
        limits=limits,
        sentence_constraints=constraints.sentence_constraints(tf.shape(limits)[0]),
        uniforms=sentence_uniforms(
            tf.constant([settings.seed, 0]), keys, limits, config.nbest
        ),
    )
    return Search(Sampler(settings, config.nbest, constraints), inputs, limits)


def sentence_keys(inputs: tf.Tensor) -> tf.Tensor:
    """Hashes sentences, int32 (batch, source), to int32 (batch,), at least 0.

    Padding does not change the hash.
    """
    base = tf.fill([tf.shape(inputs)[1]], tf.constant(_HASH_BASE, tf.int64))
    # Powers wrap around at 64 bits; padding adds 0.
    powers = tf.math.cumprod(base)
    sums = tf.reduce_sum(tf.cast(inputs, tf.int64) * powers, axis=1)
    # Keeps the upper bits; the lower bits of a product depend on few bits of a factor.
    return tf.cast(tf.bitwise.right_shift(sums, 33) & _LARGEST_KEY, tf.int32)


class SamplingInputs(NamedTuple):
    """The inputs of sampling for each sentence.

    Attributes:
        limits: int32 (rows,), the maximum number of tokens, EOS included.
        sentence_constraints: The constraints of each sentence.
        uniforms: float32 (rows, samples, steps), one random number per draw.
    """

    limits: tf.Tensor
    sentence_constraints: SentenceConstraints
    uniforms: tf.Tensor


class Samples(NamedTuple):
    """The hypotheses of the sentences still in the batch.

    Attributes:
        last_ids: int32 (rows, samples), PAD after the end.
        unfinished: bool (rows, samples).
        log_probs: float32 (rows, samples); -inf if every token was forbidden.
        hypotheses: int32 (rows, samples, width).
    """

    last_ids: tf.Tensor
    unfinished: tf.Tensor
    log_probs: tf.Tensor
    hypotheses: tf.Tensor


@dataclass(frozen=True)
class Sampler:
    """Sampling: a `Method` of `decode_batch`."""

    settings: Sampling
    samples: int
    constraints: Constraints

    def start(self, inputs: SamplingInputs, width: int | tf.Tensor) -> Samples:
        """Returns the empty hypotheses, which are the result if the limit is 0."""
        places = [tf.shape(inputs.limits)[0], self.samples]
        return Samples(
            last_ids=tf.fill(places, PAD_ID),
            unfinished=tf.broadcast_to((inputs.limits > 0)[:, None], places),
            log_probs=tf.zeros(places),
            hypotheses=tf.fill([*places, width], PAD_ID),
        )

    def step(
        self, decoder: StepwiseDecoder, progress: Progress, inputs: SamplingInputs
    ) -> Progress:
        """Draws the next token of every unfinished hypothesis."""
        samples = progress.sentences
        logits, state = decoder.step(samples.last_ids, progress.length, progress.state)
        drawn, log_probs = self._draw_next(logits, progress, inputs)
        length = progress.length + 1
        ids = tf.where(samples.unfinished, drawn, PAD_ID)
        log_probs = samples.log_probs + tf.where(samples.unfinished, log_probs, 0.0)
        unfinished = (
            samples.unfinished
            & tf.not_equal(drawn, EOS_ID)
            & tf.not_equal(log_probs, NEVER)
            & (length < inputs.limits)[:, None]
        )
        is_added = tf.equal(tf.range(tf.shape(samples.hypotheses)[2]), progress.length)
        sentences = Samples(
            last_ids=ids,
            unfinished=unfinished,
            log_probs=log_probs,
            hypotheses=tf.where(is_added, ids[:, :, None], samples.hypotheses),
        )
        return Progress(length, sentences, state)

    def is_open(self, sentences: Samples) -> tf.Tensor:
        """Returns which sentences have unfinished hypotheses: bool (rows,)."""
        return tf.reduce_any(sentences.unfinished, axis=1)

    def results(self, sentences: Samples) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the samples and their log probabilities."""
        return sentences.hypotheses, sentences.log_probs

    def _draw_next(
        self, logits: tf.Tensor, progress: Progress, inputs: SamplingInputs
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws one token for every hypothesis from logits (rows, samples, vocab).

        Returns:
            ids, int32 (rows, samples), and their log probabilities under the model,
            float32 (rows, samples), -inf where every token is forbidden.
        """
        logits = tf.cast(logits, tf.float32)
        vocab = logits.shape[2] or tf.shape(logits)[2]
        forbidden = self.constraints.forbidden(
            inputs.sentence_constraints,
            progress.sentences.hypotheses,
            progress.length,
            logits,
        )
        allowed = tf.where(forbidden, NEVER, logits)
        uniforms = tf.gather(inputs.uniforms, progress.length, axis=2)
        # (rows, samples, vocab) -> (rows * samples, vocab)
        flat = tf.reshape(allowed, [-1, vocab])
        drawn = draw(flat, tf.reshape(uniforms, [-1]), self.settings)
        chosen = tf.gather(flat, drawn, batch_dims=1)
        normalizer = tf.reduce_logsumexp(tf.reshape(logits, [-1, vocab]), axis=1)
        # (rows * samples,) -> (rows, samples)
        shape = tf.shape(uniforms)
        return tf.reshape(drawn, shape), tf.reshape(chosen - normalizer, shape)
