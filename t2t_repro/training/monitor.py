"""What a running training tells: lines for people, tables, TensorBoard's events."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import tensorflow as tf

from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.step import StepResult

LOG_STEPS = 50
FIRST_SIGN_SECONDS = 30.0
LOG_FILE = "training_log.tsv"
TENSORBOARD = "tensorboard"
VALIDATION_FILE = "validation_log.tsv"
_COLUMNS = (
    *("step", "loss", "learning_rate", "target_tokens_per_second"),
    *("token_share", "norm"),
)

Unreported = list[list[float]]
"""Results of updates since the last report: loss, tokens, share, norm, rate of each."""


def validation_table(directory: Path, figure: str = "bleu") -> MetricsLog:
    """Returns the table of a model directory's validations, scored by `figure`."""
    return MetricsLog(directory / VALIDATION_FILE, ("step", "loss", f"greedy_{figure}"))


class Monitor:
    """Averages the results of steps and reports them every `LOG_STEPS` updates.

    Writes ``training_log.tsv``, ``validation_log.tsv`` and ``tensorboard/`` into the
    model directory; None reports to `stream` alone (workers). Rows after `start_step`
    are cut off, and `unreported` is what `unreported()` returned at that step. `figure`
    is what translations are scored by: "bleu", or "f1" of trees.
    """

    def __init__(
        self,
        directory: Path | None,
        train_steps: int,
        start_step: int,
        stream: TextIO,
        unreported: Sequence[Sequence[float]] = (),
        figure: str = "bleu",
    ) -> None:
        self._figure = figure
        self._train_steps = train_steps
        self._stream = stream
        self._results: Unreported = [list(result) for result in unreported]
        self._start_step = start_step
        self._began = self._last_report = time.monotonic()
        self._has_reported = False
        self._counted = 0.0  # Target tokens of this run since the last report.
        self._writer = None
        self._log: MetricsLog | None = None
        self._validations: MetricsLog | None = None
        if directory is not None:
            self._writer = tf.summary.create_file_writer(str(directory / TENSORBOARD))
            self._log = MetricsLog(directory / LOG_FILE, _COLUMNS)
            self._log.cut(start_step)
            self._validations = validation_table(directory, figure)
            self._validations.cut(start_step)

    def log(self, line: str) -> None:
        """Prints a line at once."""
        print(line, file=self._stream, flush=True)

    def step_done(self, step: int, result: StepResult | None) -> None:
        """Takes the result of update number `step`, from 1; None: it was skipped."""
        if result is not None:
            self._results.append(list(vars(result).values()))
            self._counted += result.tokens
        if self._results and (step % LOG_STEPS == 0 or step == self._train_steps):
            self._report(step)
        elif not self._has_reported:
            self._say_first_sign(step)

    def _say_first_sign(self, step: int) -> None:
        """Says once, where the first report takes long, that there will be one."""
        spent = time.monotonic() - self._began
        if spent < FIRST_SIGN_SECONDS:
            return
        self._has_reported = True
        done = step - self._start_step
        left = spent / done * (self._train_steps - step)
        self.log(
            f"step {step:,}/{self._train_steps:,}  {spent / done:.1f} s a step so far, "
            f"ETA {_clock(left)}; reports come every {LOG_STEPS} steps"
        )

    def unreported(self) -> Unreported:
        """Returns what a monitor needs that goes on in the place of this one."""
        return [list(result) for result in self._results]

    def validated(self, step: int, loss: float, reached: float | None) -> None:
        """Reports nats per symbol, and the greedy score (None: not translated)."""
        values = {"val_loss": loss}
        if reached is not None:
            values[f"val_greedy_{self._figure}"] = reached
        self.scalars(step, values)
        if self._validations is not None:
            spelled = "" if reached is None else f"{reached:.6f}"
            self._validations.add(str(step), f"{loss:.6f}", spelled)

    def was_validated(self, step: int) -> bool:
        """Says whether a validation was reported; workers know of none to make."""
        return self._validations is None or step in self._validations.steps()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Surrounds what counts as neither training nor progress."""
        entered = time.monotonic()
        yield
        spent = time.monotonic() - entered
        self._began += spent
        self._last_report += spent

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes values to TensorBoard."""
        if self._writer is None:
            return
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
        self._writer.flush()

    def _report(self, step: int) -> None:
        results, self._results = np.array(self._results), []
        loss, _, token_ratio, norm = results[:, :4].mean(axis=0)
        now = time.monotonic()
        self._has_reported = True
        rate = results[-1, 4]
        speed = self._counted / max(now - self._last_report, 1e-9)
        self._last_report, self._counted = now, 0.0
        left = self._train_steps - step
        per_step = (now - self._began) / max(step - self._start_step, 1)
        self.log(
            f"step {step:,}/{self._train_steps:,}  loss {loss:.4f}  rate {rate:.2e}  "
            f"{speed:,.0f} target tokens/s  {token_ratio:.1%} tokens  norm {norm:.2f}  "
            f"ETA {_clock(left * per_step)}"
        )
        values = {
            "loss": loss,
            "learning_rate": rate,
            "target_tokens_per_second": speed,
            "token_share": token_ratio,
            "gradient_norm": norm,
        }
        self.scalars(step, values)
        if self._log is not None:
            self._log.add(
                *(str(step), f"{loss:.6f}", f"{rate:.8g}", f"{speed:.0f}"),
                *(f"{token_ratio:.4f}", f"{norm:.4f}"),
            )


def _clock(seconds: float) -> str:
    """Writes a duration as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
