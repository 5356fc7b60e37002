"""Constraints of one sentence, checked on whole hypotheses in plain Python."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.constraints import Constraints
from tests.decoding.toy_decoders import EOS, MemoryDecoder

Ids = tuple[int, ...]


@dataclass(frozen=True)
class PlainConstraints:
    """The constraints of one sentence.

    Attributes:
        min_length: Minimum number of tokens, EOS included.
        prefix: Ids with which each hypothesis must begin.
        n: Length of the n-grams that must not repeat; 0: all may repeat.
    """

    min_length: int = 0
    prefix: Ids = ()
    n: int = 0

    def allows(self, ids: Ids) -> bool:
        """Returns whether a whole hypothesis is allowed; a prefix takes precedence."""
        start = len(self.prefix)
        if ids[:start] != self.prefix:
            return False
        if start < len(ids) < self.min_length and ids[-1] == EOS:
            return False
        ends = range(max(start + 1, self.n), len(ids) + 1)
        grams = {end: ids[end - self.n : end] for end in range(self.n, len(ids) + 1)}
        return self.n == 0 or not any(
            grams[end] == grams[earlier]
            for end in ends
            for earlier in range(self.n, end)
        )


def as_tensors(constraints: list[PlainConstraints], n: int) -> Constraints:
    """Converts the constraints of a batch to tensors."""
    longest = max(len(one.prefix) for one in constraints)
    prefixes = [
        (*one.prefix, *[0] * (longest - len(one.prefix))) for one in constraints
    ]
    return Constraints(
        min_lengths=tf.constant([one.min_length for one in constraints]),
        prefixes=tf.reshape(
            tf.constant(prefixes, tf.int32), [len(constraints), longest]
        ),
        no_repeat_ngram=n,
    )


def greedy(
    decoder: MemoryDecoder,
    source: np.ndarray,
    limit: int,
    constraints: PlainConstraints,
) -> Ids:
    """Appends the best allowed token, but never PAD, until EOS or the limit."""
    ids: Ids = ()
    while len(ids) < limit and EOS not in ids:
        if len(ids) < len(constraints.prefix):
            ids = constraints.prefix[: len(ids) + 1]
            continue
        log_probs = decoder.log_probs(source, ids)
        best_first = [int(token) for token in np.argsort(-log_probs) if token != 0]
        ids = next((*ids, s) for s in best_first if constraints.allows((*ids, s)))
    return ids
