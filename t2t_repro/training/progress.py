"""Decisions from the validations of a training: the best step and early stopping."""

from collections.abc import Sequence
from typing import NamedTuple


class Validation(NamedTuple):
    """One validation of a training.

    Attributes:
        step: Number of steps before it.
        loss: Validation loss in nats per token.
        score: Score of greedy translations; None during the warm-up.
    """

    step: int
    loss: float
    score: float | None

    def value(self, metric: str) -> float | None:
        """Returns the value of `validation_metric`, higher is better; None if unknown.

        Args:
            metric: "loss", or another name for the score.
        """
        return -self.loss if metric == "loss" else self.score


def find_best(validations: Sequence[Validation], metric: str) -> Validation | None:
    """Returns the first of the best validations; None if none has a value."""
    known = [each for each in validations if each.value(metric) is not None]
    return max(known, key=lambda each: each.value(metric) or 0.0, default=None)


def stops_early(
    validations: Sequence[Validation], metric: str, patience: int
) -> str | None:
    """Returns why training stops early; None if it continues.

    Args:
        validations: Validations so far, in order.
        metric: Hyper-parameter `validation_metric`.
        patience: Hyper-parameter `early_stopping`; 0 never stops.
    """
    best = find_best(validations, metric)
    if best is None or not patience:
        return None
    since = sum(each.step > best.step for each in validations)
    if since < patience:
        return None
    return (
        f"stopping early: the best validation was at step {best.step:,}, "
        f"{since} validations ago (early_stopping={patience}, "
        f"validation_metric={metric})"
    )
