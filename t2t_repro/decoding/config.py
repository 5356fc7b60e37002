"""The settings of beam search and of sampling."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.algorithms import algorithm_class
from t2t_repro.decoding.algorithms.algorithm import SearchAlgorithm
from t2t_repro.decoding.algorithms.t2t import BatchWideT2TSearch, T2TSearch
from t2t_repro.decoding.constraints import Constraints
from t2t_repro.system.errors import UserError
from t2t_repro.system.limits import MOST_OF_SEARCH

# Minimum of whole numbers; their maximum limits the memory of a search.
_WHOLE = {"beam_size": 1, "nbest": 1} | dict.fromkeys(
    ("extra_length", "min_length", "no_repeat_ngram"), 0
)
_NUMBERS = {"alpha": 0.0, "length_factor": 0.0, "word_penalty": -inf}


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling, which draws tokens instead of searching.

    Attributes:
        temperature: Divisor of the logits, above 0.
        top_k: Number of most probable tokens to draw from; 0 for all.
        top_p: Total probability of the most probable tokens to draw from; 1 for all.
        seed: Seed of the random numbers. Equal sentences get equal samples.

    Raises:
        ValueError: A value is out of range or has the wrong type.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Rejects values out of range."""
        for name in ("temperature", "top_p"):
            if not isinstance(value := getattr(self, name), int | float | np.number):
                raise ValueError(f"{name} is {value!r}, must be a number")
        if not isinstance(self.seed, int | np.integer):
            raise ValueError(f"seed is {self.seed!r}, must be a whole number")
        if not self.temperature > 0:
            raise ValueError(
                f"temperature is {self.temperature}, must be above 0; use "
                "beam_size 1 without sampling for the most probable token at each step"
            )
        if not isinstance(self.top_k, int | np.integer) or self.top_k < 0:
            raise ValueError(
                f"top_k is {self.top_k}, must be a whole number: 0 (all) or more"
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}, must be above 0 and at most 1")


@dataclass(frozen=True)
class DecodingConfig:
    """Settings of the search for the translations of a sentence.

    Attributes:
        beam_size: Number of hypotheses per sentence; 1 is greedy search. Not used by
            sampling.
        alpha: Exponent of the length penalty, at least 0. Not used by sampling.
        extra_length: An output has at most `length_factor` times the tokens of the
            input plus this number, EOS included in both. It and the other whole numbers
            are at most 100,000.
        nbest: Number of hypotheses per sentence, in beam search at most `beam_size`.
            The best hypothesis does not depend on it.
        min_length: Minimum number of tokens of an output, EOS included.
        no_repeat_ngram: Length of the n-grams that must not occur twice in an output; 0
            allows repetition.
        sampling: Settings of sampling; None for beam search.
        tensor2tensor_rules: Whether to use one limit and one stop rule for a batch, as
            tensor2tensor does: `BatchWideT2TSearch` replaces `algorithm`.
        algorithm: The beam search algorithm: "t2t", "marian", "transformers" or
            "opennmt", each a class in `decoding.algorithms`.
        word_penalty: Marian's word penalty, subtracted from the log probability for
            each token. Not used by sampling.
        length_factor: Factor of the input's length; see `extra_length`.
        never: Tokens that are never produced; PAD is always one of them.

    Raises:
        ValueError: A value is out of range.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    nbest: int = 1
    min_length: int = 0
    no_repeat_ngram: int = 0
    sampling: Sampling | None = None
    tensor2tensor_rules: bool = False
    algorithm: str = "t2t"
    word_penalty: float = 0.0
    length_factor: float = 1.0
    never: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Rejects values out of range."""
        algorithm_class(self.algorithm)
        for name, least in _WHOLE.items():
            value, most = getattr(self, name), MOST_OF_SEARCH
            if not isinstance(value, int | np.integer) or not least <= value <= most:
                raise ValueError(
                    f"{name} is {value!r}, must be a whole number from {least} to "
                    f"{most:,}"
                )
        for name, minimum in _NUMBERS.items():
            value = getattr(self, name)
            is_number = isinstance(value, int | float | np.number)
            if not (is_number and isfinite(value) and value >= minimum):
                positive = " of at least 0" if minimum == 0 else ""
                raise ValueError(
                    f"{name} is {value!r}, must be a finite number{positive}"
                )
        if not isinstance(self.sampling, Sampling | None):
            raise ValueError(f"sampling is {self.sampling!r}, must be a Sampling")
        if not self.sampling and self.nbest > self.beam_size:
            raise ValueError(
                f"nbest is {self.nbest}, must be 1 to {self.beam_size} (beam_size)"
            )

    @property
    def hypotheses(self) -> int:
        """Hypotheses per sentence: the `beam_size` of the decoder."""
        return self.nbest if self.sampling else self.beam_size

    def search_algorithm(
        self, constraints: Constraints | None = None
    ) -> SearchAlgorithm:
        """Returns the beam search algorithm with these settings."""
        kind = algorithm_class(self.algorithm)
        if self.tensor2tensor_rules:
            kind = BatchWideT2TSearch
        return kind(
            self.beam_size, self.alpha, self.nbest, self.word_penalty, constraints
        )

    @property
    def scoring(self) -> SearchAlgorithm:
        """Algorithm that computes scores; those of sampling are log probabilities."""
        return T2TSearch(1, 0.0) if self.sampling else self.search_algorithm()

    def longest(self, length: Any) -> Any:
        """Returns the limit of an output in tokens, EOS included.

        `length`, the input's length with EOS, is a number or an int32 tensor.
        """
        if self.length_factor != 1:
            # Numbers are scaled in float32, too, so that they round like tensors.
            factor = np.float32(self.length_factor)
            if tf.is_tensor(length):
                scaled = tf.math.ceil(tf.cast(length, tf.float32) * factor)
                length = tf.cast(scaled, tf.int32)
            else:
                length = int(np.ceil(np.float32(length) * factor))
        return length + self.extra_length

    def check_min_length(self, length: int) -> None:
        """Raises UserError if `min_length` exceeds the limit for an input's length."""
        limit = self.longest(length)
        if self.min_length > limit:
            raise UserError(
                f"min_length is {self.min_length}, but the translation of a sentence "
                f"of {length} subwords, EOS included, has at most {limit}; reduce "
                "min_length or increase extra_length"
            )

    def check_prefix(self, prefix: str, size: int, length: int) -> None:
        """Raises UserError if a prefix of `size` tokens exceeds the limit.

        `length` is the number of tokens of the input, EOS included.
        """
        limit = self.longest(length)
        if size > limit:
            raise UserError(
                f"the prefix {prefix[:40]!r} has {size:,} subwords, but its "
                f"translation at most {limit:,}; shorten it or set extra_length"
            )

    def constraints(self, prefixes: tf.Tensor | None = None) -> Constraints | None:
        """Returns the constraints of a batch; None if there are none.

        `prefixes`, the beginnings of the outputs, are int32 (batch, prefix), 0-padded.
        """
        others = self.min_length or self.no_repeat_ngram or self.never
        if prefixes is None and not others:
            return None
        min_length = tf.constant(self.min_length) if self.min_length else None
        return Constraints(min_length, prefixes, self.no_repeat_ngram, self.never)
