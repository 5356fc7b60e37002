"""Marian's, Transformers' and OpenNMT-tf's beam searches in plain Python.

Sources: Marian's translator/beam_search.cpp and history.h, Transformers'
generation/utils.py and OpenNMT-tf's utils/decoding.py. Ties between continuations are
broken by the earlier hypothesis, then by the lower id, which no program guarantees.
Ties between finished hypotheses are broken by the one that ended earlier.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.decoding.toy_decoders import EOS, PAD

Ids = tuple[int, ...]
LogProbs = Callable[[Ids], np.ndarray]
"""Computes log probabilities of the token after a hypothesis: float64 (vocab,)."""


class Hypothesis(NamedTuple):
    """A hypothesis and its score."""

    score: float
    ids: Ids
    log_prob: float


def best_first(
    hypotheses: list[Hypothesis], margins: list[float] | None = None
) -> list[Hypothesis]:
    """Sorts by score; ties keep their order.

    Score differences between neighbors, except for ties, are appended to `margins`.
    """
    ordered = sorted(hypotheses, key=lambda each: -each.score)
    if margins is not None:
        pairs = itertools.pairwise(each.score for each in ordered)
        margins += [gap for one, other in pairs if (gap := one - other) > 0]
    return ordered


def candidates(
    log_probs: LogProbs,
    beam: list[Hypothesis],
    never: Ids,
    margins: list[float] | None = None,
) -> list[Hypothesis]:
    """Returns the continuations of a beam, best first, scored by log probability.

    Excludes PAD and the tokens in `never`. Appends score differences to `margins`.
    """
    continuations = []
    for hypothesis in beam:
        for token, log_prob in enumerate(log_probs(hypothesis.ids)):
            if token not in (PAD, *never):
                total = hypothesis.log_prob + float(log_prob)
                ids = (*hypothesis.ids, token)
                continuations.append(Hypothesis(total, ids, total))
    return best_first(continuations, margins)


def marian(
    log_probs: LogProbs,
    limit: int,
    beam_size: int,
    normalize: float,
    word_penalty: float = 0.0,
    never: Ids = (),
    margins: list[float] | None = None,
) -> list[Hypothesis]:
    """Returns all results, best first; ids end in EOS unless cut at the limit."""
    beam, results = [Hypothesis(0.0, (), 0.0)], []
    places = beam_size
    for length in range(1, limit + 1):
        best = candidates(log_probs, beam, never, margins)[:places]
        beam = []
        for _, ids, log_prob in best:
            if ids[-1] == EOS or length == limit:
                score = (log_prob - word_penalty * length) / length**normalize
                results.append(Hypothesis(score, ids, log_prob))
                places -= 1
            else:
                beam.append(Hypothesis(log_prob, ids, log_prob))
        if not beam:
            break
    return best_first(results, margins)


def transformers(
    log_probs: LogProbs,
    limit: int,
    beam_size: int,
    penalty: float,
    never: Ids = (),
    margins: list[float] | None = None,
) -> list[Hypothesis]:
    """Returns the finished hypotheses, best first, all with EOS."""
    beam, results = [Hypothesis(0.0, (), 0.0)], []
    for length in range(1, limit + 1):
        best = candidates(log_probs, beam, never, margins)[: 2 * beam_size]
        if length == limit:  # EOS is forced, with probability 1.
            best = [Hypothesis(h.score, (*h.ids, EOS), h.log_prob) for h in beam]
        for _, ids, log_prob in best[:beam_size]:
            if ids[-1] == EOS:
                score = log_prob / length**penalty
                results.append(Hypothesis(score, ids, log_prob))
        results = best_first(results, margins)[:beam_size]
        beam = [each for each in best if each.ids[-1] != EOS][:beam_size]
        if not beam:
            break
        hopeful = beam[0].log_prob / length**penalty
        if len(results) == beam_size:
            if margins is not None:
                margins.append(abs(results[-1].score - hopeful))
            if results[-1].score >= hopeful:
                break
    return results


def opennmt(
    log_probs: LogProbs, limit: int, beam_size: int, penalty: float, never: Ids = ()
) -> list[Hypothesis]:
    """Returns the final beam; ids end in EOS unless cut at the limit."""
    beam = [Hypothesis(0.0, (), 0.0)]
    # OpenNMT-tf keeps these scores by position in the beam, not by hypothesis.
    compared = [0.0]

    def divisor(length: int) -> float:
        return ((5 + length) / 6) ** penalty

    for _ in range(limit):
        if all(EOS in each.ids for each in beam):
            break
        extended: list[tuple[float, Ids, float, bool]] = []
        for place, (_, ids, own) in enumerate(beam):
            if EOS in ids:
                score = compared[place] / divisor(len(ids) + 1)
                extended.append((score, ids, own, True))
                continue
            for token, log_prob in enumerate(log_probs(ids)):
                if token not in (PAD, *never):
                    total = own + float(log_prob)
                    score = total / divisor(len(ids) + 1)
                    extended.append((score, (*ids, token), total, False))
        best = sorted(extended, key=lambda each: -each[0])[:beam_size]
        beam = [Hypothesis(p / divisor(len(ids)), ids, p) for _, ids, p, _ in best]
        compared = [
            compared[place] if had_ended else total
            for place, (_, _, total, had_ended) in enumerate(best)
        ]
    return beam
