"""Results of a translation."""

from collections.abc import Callable
from typing import NamedTuple

Progress = Callable[[int, int], object] | None
"""Callback after each batch; its arguments are the numbers of lines and of target
subwords translated since the last call."""


class ScoredText(NamedTuple):
    """One of several translations of a sentence; the fields are as in `Translation`."""

    text: str
    score: float
    tokens: int
    log_prob: float
    alignment: str | None = None


class Translation(NamedTuple):
    """Translation of a sentence.

    Attributes:
        text: Best hypothesis, or the first sample.
        score: Log probability divided by the length penalty; 0 for a blank line.
        tokens: Number of subwords, EOS included.
        log_prob: Log probability in nats.
        cut: Whether the source was cut to the maximum input length.
        others: Next best hypotheses, or further samples: at most `nbest - 1` of them.
        alignment: Word alignment in Pharaoh format; None unless requested.
        divided: Whether the source was divided into sentences because it was too long.
        missing_terms: Required terms that the best hypothesis lacks.
    """

    text: str
    score: float
    tokens: int
    log_prob: float
    cut: bool
    others: tuple[ScoredText, ...] = ()
    alignment: str | None = None
    divided: bool = False
    missing_terms: tuple[str, ...] = ()
