"""Handling of steps whose loss or gradient is not finite."""

import math
from collections.abc import Callable, Iterable

from t2t_repro.system.errors import UserError
from t2t_repro.training.step import StepResult

MOST_SKIPPED_IN_A_ROW = 10


class NonFiniteGuard:
    """Counts skipped steps and stops a training run that diverges.

    Args:
        precision: Precision of the matmuls. "float16" skips some steps in normal
            operation.

    Attributes:
        skipped: Number of skipped steps since the start of the training run.
    """

    def __init__(self, precision: str) -> None:
        self.skipped = 0
        self._precision = precision
        self._in_a_row = 0

    def check(
        self,
        step: int,
        result: StepResult,
        pairs: Callable[[], Iterable[int | str]],
        log: Callable[[str], None],
    ) -> bool:
        """Returns whether loss and gradient are finite; logs a skipped step.

        Args:
            step: Number of the step, from 1.
            result: Result of the step.
            pairs: Function that returns the lines of the batch's sentence pairs.
            log: Function called with the message about a skipped step.

        Raises:
            UserError: This is the last of `MOST_SKIPPED_IN_A_ROW` skipped steps.
        """
        if math.isfinite(result.loss) and math.isfinite(result.gradient_norm):
            self._in_a_row = 0
            return True
        self.skipped += 1
        self._in_a_row += 1
        fault = (
            f"the loss of step {step} is {result.loss}, its gradient norm is "
            f"{result.gradient_norm}"
        )
        if self._in_a_row == MOST_SKIPPED_IN_A_ROW:
            raise UserError(
                f"{fault}, and the previous {MOST_SKIPPED_IN_A_ROW - 1} steps were "
                "skipped too: the training has diverged; lower learning_rate_scale, "
                "raise warmup_steps or set clip_norm, and start over"
            )
        message = f"skipped: {fault}; {self.skipped:,} skipped so far"
        if self._precision == "float16":
            message += " (occasional overflow is normal in float16)"
        numbers = ", ".join(map(str, pairs()))
        log(message + (f"; sentence pairs {numbers}" if numbers else ""))
        return False
