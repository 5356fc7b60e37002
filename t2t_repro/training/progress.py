"""Decisions from the validations of a training: the best step and early stopping."""

from collections.abc import Sequence
from typing import NamedTuple


class Validation(NamedTuple):
    """One validation of a training.

    Attributes:
        step: Number of steps before it.
        loss: Validation loss in nats per token.
        score: Score of greedy translations; None during the warm-up.
        guard: Score of greedy translations of the guard set; None without one.
    """

    step: int
    loss: float
    score: float | None
    guard: float | None = None

    def value(self, metric: str) -> float | None:
        """Returns the value of `validation_metric`, higher is better; None if unknown.

        Args:
            metric: "loss", or another name for the score.
        """
        return -self.loss if metric == "loss" else self.score


def is_eligible(
    validation: Validation, first: Validation, tolerance: float | None
) -> bool:
    """Returns whether a validation loses at most the tolerance on the guard set.

    Args:
        validation: Validation of a checkpoint.
        first: Validation of step 0.
        tolerance: Tolerance in points of the score; None without a guard.
    """
    if tolerance is None or validation.guard is None or first.guard is None:
        return tolerance is None
    return validation.guard >= first.guard - tolerance


def find_best(
    validations: Sequence[Validation], metric: str, tolerance: float | None = None
) -> Validation | None:
    """Returns the best eligible validation, the first of equal ones.

    Returns None if no validation has a value; see `is_eligible`.
    """
    known = [
        each
        for each in validations
        if each.value(metric) is not None
        and is_eligible(each, validations[0], tolerance)
    ]
    return max(known, key=lambda each: each.value(metric) or 0.0, default=None)


def stops_early(
    validations: Sequence[Validation],
    metric: str,
    patience: int,
    tolerance: float | None = None,
) -> str | None:
    """Returns why training stops early; None if it continues.

    Args:
        validations: Validations so far, in order.
        metric: Hyper-parameter `validation_metric`.
        patience: Hyper-parameter `early_stopping`; 0 never stops.
        tolerance: See `is_eligible`.
    """
    best = find_best(validations, metric, tolerance)
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
