"""Beam search to check the fast one with: no cache, no batch, NumPy in float64."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

EOS = 1
PAD = 0

LogProbs = Callable[[list[list[int]]], npt.NDArray[np.float64]]
"""Beginnings of one length -> log probabilities of the next symbol, (n, V)."""


def plain_search(
    log_probs: LogProbs, *, beam_size: int, alpha: float, steps: int, min_length: int
) -> tuple[list[int], float]:
    """Finds the best translation of one sentence.

    Args:
        log_probs: the model; it reads whole beginnings again at each step.
        beam_size: unfinished hypotheses that are kept.
        alpha: exponent of the length penalty.
        steps: the most symbols, EOS counted.
        min_length: the least symbols, EOS counted.

    Returns:
        The ids, EOS included unless cut at the limit, and the score.
    """
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, steps + 1):
        table = log_probs([ids for _, ids in alive])
        table[:, PAD] = -np.inf
        if length < min_length:
            table[:, EOS] = -np.inf
        totals = np.array([score for score, _ in alive])[:, None] + table
        best = np.argsort(-totals, axis=None, kind="stable")[: 2 * beam_size]
        grown: list[tuple[float, list[int]]] = []
        for place in best:
            parent, symbol = divmod(int(place), table.shape[1])
            total = float(totals.flat[place])
            ids = [*alive[parent][1], symbol]
            if symbol == EOS:
                finished.append((total / penalty(length, alpha), ids))
            else:
                grown.append((total, ids))
        alive = grown[:beam_size]
        finished = sorted(finished, key=lambda found: -found[0])[:beam_size]
        if finished and finished[0][0] >= alive[0][0] / penalty(steps, alpha):
            break
    if not finished:
        finished = [(alive[0][0] / penalty(steps, alpha), alive[0][1])]
    return finished[0][1], finished[0][0]


def penalty(length: int, alpha: float) -> float:
    """Computes ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14)."""
    return float(((5 + length) / 6) ** alpha)


def log_softmax(logits: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Computes log probabilities over the last axis in float64."""
    values = np.asarray(logits, np.float64)
    shifted = values - values.max(axis=-1, keepdims=True)
    normalised: npt.NDArray[np.float64] = shifted - np.log(
        np.exp(shifted).sum(axis=-1, keepdims=True)
    )
    return normalised
