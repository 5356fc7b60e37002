"""How hypotheses are found, in one value: beam search or sampling, and its settings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.decoding.decode_loop import BeamSearchResult
from t2t_repro.decoding.decoder import State, StepwiseDecoder
from t2t_repro.decoding.lexical_constraints import Terms
from t2t_repro.decoding.sampling import sample
from t2t_repro.decoding.stopping import T2T, Scoring

# Multiplies the hash of a sentence at each symbol; odd, so that no symbol is lost.
_HASH_BASE = 0x5851F42D4C957F2D
_LARGEST_KEY = 2**31 - 1


@dataclass(frozen=True)
class Sampling:
    """Draws symbols instead of searching; the fields are `sampling.sample`'s.

    Attributes:
        temperature: logits are divided by it; above 0.
        top_k: draws among the k most probable symbols; 0 for all.
        top_p: draws among the fewest symbols of this probability; 1 for all.
        seed: another seed gives other translations. Equal sentences have equal ones.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class DecodingConfig:
    """How the translations of a sentence are found.

    Attributes:
        beam_size: hypotheses per sentence; 1 is greedy. Sampling does not use it.
        alpha: exponent of the length penalty, at least 0. Sampling does not use it.
        extra_length: an output ends at the input's length, EOS included, plus this.
        length_factor: by which the input's length is multiplied before.
        nbest: hypotheses to find, or draw, for each sentence. Beam search finds at
            most `beam_size`; the best does not depend on it.
        min_length: the least symbols of an output, EOS counted.
        no_repeat_ngram: n, or 0: no output has the same n symbols in a row twice.
        sampling: draws instead of searching; None searches.
        tensor2tensor_rules: as tensor2tensor searches: one limit and one stop rule for
            a batch, so that a translation may depend on its neighbours, and the plain
            log probability as the score of what did not end.
        algorithm: whose beam search it is: "t2t", "marian", "transformers" or
            "opennmt".
        word_penalty: Marian's, of each symbol. Sampling does not use it.
        never: symbols that never come, beside PAD.

    Raises:
        ValueError: `nbest` is out of range, or rules are asked for that exclude each
            other.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    nbest: int = 1
    min_length: int = 0
    no_repeat_ngram: int = 0
    sampling: Sampling | None = None
    tensor2tensor_rules: bool = False
    algorithm: str = T2T
    word_penalty: float = 0.0
    length_factor: float = 1.0
    never: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuses what cannot be found."""
        if self.sampling is None and not 1 <= self.nbest <= self.beam_size:
            raise ValueError(f"nbest is {self.nbest}, must be 1 to {self.beam_size}")
        if self.tensor2tensor_rules and self.sampling:
            raise ValueError("tensor2tensor's rules are of beam search, not sampling")

    @property
    def hypotheses(self) -> int:
        """Hypotheses per sentence, the decoder's `beam`."""
        return self.nbest if self.sampling else self.beam_size

    @property
    def scoring(self) -> Scoring:
        """How log probabilities became scores; those of sampling are the same."""
        if self.sampling:
            return Scoring(0.0)
        return Scoring(self.alpha, self.algorithm, self.word_penalty)

    def longest(self, length: Any) -> Any:
        """Returns the most symbols of an output, EOS counted.

        `length`, of the input with EOS, is a number or an int32 tensor.
        """
        if self.length_factor != 1:
            # In float32 also of a number, so that both are rounded alike.
            factor = np.float32(self.length_factor)
            if tf.is_tensor(length):
                scaled = tf.math.ceil(tf.cast(length, tf.float32) * factor)
                length = tf.cast(scaled, tf.int32)
            else:
                length = int(np.ceil(np.float32(length) * factor))
        return length + self.extra_length

    def run(
        self,
        decoder: StepwiseDecoder,
        state: State,
        inputs: tf.Tensor,
        prefixes: tf.Tensor | None = None,
        width: int | None = None,
        terms: Terms | None = None,
    ) -> BeamSearchResult:
        """Finds the hypotheses of a batch of sentences.

        Args:
            decoder: scores the next symbols of `hypotheses` hypotheses a sentence.
            state: the decoder's, before the first step.
            inputs: int32 (batch, source), ending in EOS, 0-padded.
            prefixes: int32 (batch, prefix), 0-padded: what each output begins with.
            terms: what each output must hold; of the constraints only `never` goes
                with it.
            width: the length of the result, at least that of any output; then no shape
                changes from step to step, as XLA needs.

        Raises:
            ValueError: a width is asked of sampling or tensor2tensor's rules, or terms
                together with what they exclude.
        """
        others = prefixes is not None or self.min_length or self.no_repeat_ngram
        if terms is not None and (self.sampling or self.tensor2tensor_rules or others):
            raise ValueError("terms are of beam search without other constraints")
        if width is not None and (self.sampling or self.tensor2tensor_rules):
            raise ValueError("only beam search by its own rules has a fixed width")
        lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32)
        limits = self.longest(lengths)
        batch_size = tf.shape(inputs)[0]
        if self.sampling is None:
            return beam_search(
                decoder,
                state,
                batch_size=batch_size,
                beam_size=self.beam_size,
                alpha=self.alpha,
                max_lengths=limits,
                nbest=self.nbest,
                constraints=self.constraints(prefixes),
                compact_at=0.25 if width is None else None,
                width=width,
                tensor2tensor_rules=self.tensor2tensor_rules,
                algorithm=self.algorithm,
                word_penalty=self.word_penalty,
                terms=terms,
            )
        return sample(
            decoder,
            state,
            batch_size=batch_size,
            max_lengths=limits,
            seed=tf.constant([self.sampling.seed, 0]),
            keys=sentence_keys(inputs),
            samples=self.nbest,
            temperature=self.sampling.temperature,
            top_k=self.sampling.top_k,
            top_p=self.sampling.top_p,
            constraints=self.constraints(prefixes),
        )

    def constraints(self, prefixes: tf.Tensor | None = None) -> Constraints | None:
        """Returns what else is asked; None if nothing is."""
        few = self.min_length or self.no_repeat_ngram or self.never
        if prefixes is None and not few:
            return None
        least = tf.constant(self.min_length) if self.min_length else None
        return Constraints(least, prefixes, self.no_repeat_ngram, self.never)


def sentence_keys(inputs: tf.Tensor) -> tf.Tensor:
    """Hashes sentences, int32 (batch, source): int32 (batch,), at least 0.

    Padding changes nothing.
    """
    base = tf.fill([tf.shape(inputs)[1]], tf.constant(_HASH_BASE, tf.int64))
    # Products wrap around at 64 bits; padding adds nothing.
    powers = tf.math.cumprod(base)
    sums = tf.reduce_sum(tf.cast(inputs, tf.int64) * powers, axis=1)
    # The upper bits: the lower ones of a product depend on few bits of its factors.
    return tf.cast(tf.bitwise.right_shift(sums, 33) & _LARGEST_KEY, tf.int32)
