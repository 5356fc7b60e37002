"""What is asked of one sentence, judged on whole hypotheses in plain Python."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from t2t_repro.decoding.constraints import Constraints
from tests.decoding.toy_decoders import EOS, MemoryDecoder

Ids = tuple[int, ...]


@dataclass(frozen=True)
class SentenceInputs:
    """The constraints of one sentence; n-grams of length n must not repeat."""

    least: int = 0
    prefix: Ids = ()
    n: int = 0

    def holds(self, ids: Ids) -> bool:
        """Judges a whole hypothesis; what the prefix settles is not judged."""
        start = len(self.prefix)
        if ids[:start] != self.prefix:
            return False
        if start < len(ids) < self.least and ids[-1] == EOS:
            return False
        ends = range(max(start + 1, self.n), len(ids) + 1)
        grams = {end: ids[end - self.n : end] for end in range(self.n, len(ids) + 1)}
        return self.n == 0 or not any(
            grams[end] == grams[earlier]
            for end in ends
            for earlier in range(self.n, end)
        )


def tensors(asked: list[SentenceInputs], n: int) -> Constraints:
    """Returns the constraints of a batch."""
    longest = max(len(one.prefix) for one in asked)
    prefixes = [(*one.prefix, *[0] * (longest - len(one.prefix))) for one in asked]
    return Constraints(
        min_lengths=tf.constant([one.least for one in asked]),
        prefixes=tf.reshape(tf.constant(prefixes, tf.int32), [len(asked), longest]),
        no_repeat_ngram=n,
    )


def greedy(
    decoder: MemoryDecoder, source: np.ndarray, limit: int, asked: SentenceInputs
) -> Ids:
    """Follows the best symbol that leaves a hypothesis as asked; no PAD."""
    ids: Ids = ()
    while len(ids) < limit and EOS not in ids:
        if len(ids) < len(asked.prefix):
            ids = asked.prefix[: len(ids) + 1]
            continue
        log_probs = decoder.log_probs(source, ids)
        best_first = [int(symbol) for symbol in np.argsort(-log_probs) if symbol != 0]
        ids = next((*ids, s) for s in best_first if asked.holds((*ids, s)))
    return ids
