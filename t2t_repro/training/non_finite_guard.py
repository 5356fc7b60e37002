"""What becomes of updates whose loss or gradient is not finite."""

import math
from collections.abc import Callable, Iterable

from t2t_repro.system.errors import UserError
from t2t_repro.training.step import StepResult

MOST_SKIPPED_IN_A_ROW = 10


class NonFiniteGuard:
    """Counts the skipped updates, and stops a training that diverges.

    Args:
        precision: of the training; in "float16" some updates are skipped in any case.

    Attributes:
        skipped: number of skipped updates since the training began.
    """

    def __init__(self, precision: str) -> None:
        self.skipped = 0
        self._precision = precision
        self._in_a_row = 0

    def was_made(
        self,
        step: int,
        result: StepResult,
        pairs: Callable[[], Iterable[int]],
        log: Callable[[str], None],
    ) -> bool:
        """Returns whether update number `step` was made, and logs one that was skipped.

        `pairs` returns the numbers of the sentence pairs that the update read. Raises
        UserError if it is the last of `MOST_SKIPPED_IN_A_ROW` skipped updates.
        """
        if math.isfinite(result.loss) and math.isfinite(result.gradient_norm):
            self._in_a_row = 0
            return True
        self.skipped += 1
        self._in_a_row += 1
        fault = (
            f"the loss of step {step} is {result.loss}, its gradient's norm "
            f"{result.gradient_norm}"
        )
        if self._in_a_row == MOST_SKIPPED_IN_A_ROW:
            raise UserError(
                f"{fault}, and the {MOST_SKIPPED_IN_A_ROW - 1} updates before were "
                "skipped too: the training diverged; lower learning_rate_scale, raise "
                "warmup_steps or set clip_norm, and train anew"
            )
        message = f"skipped: {fault}; {self.skipped:,} skipped so far"
        if self._precision == "float16":
            message += " (float16 overflows now and then; its loss scale is halved)"
        numbers = ", ".join(map(str, pairs()))
        log(message + (f"; sentence pairs {numbers}" if numbers else ""))
        return False
