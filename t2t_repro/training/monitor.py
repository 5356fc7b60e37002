"""What a running training tells: lines for people, events for TensorBoard."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import numpy as np
import tensorflow as tf

from t2t_repro.training.step import StepResult

LOG_STEPS = 50
LOG_FILE = "training_log.tsv"
_COLUMNS = "step\tloss\tlearning_rate\ttarget_tokens_per_second\ttoken_share\tnorm\n"


class Monitor:
    """Averages the results of steps and reports them every `LOG_STEPS` updates.

    Args:
        directory: the model directory; gets ``training_log.tsv`` and
            ``tensorboard/``. None reports to ``stream`` alone (workers).
        train_steps: the last step, for the estimated time of arrival.
        start_step: updates done before this run.
        stream: where the lines go.
    """

    def __init__(
        self, directory: Path | None, train_steps: int, start_step: int, stream: TextIO
    ) -> None:
        self._train_steps = train_steps
        self._stream = stream
        self._results: list[StepResult] = []
        self._start_step = start_step
        self._began = self._last_report = time.monotonic()
        self._writer = None
        self._log: Path | None = None
        if directory is not None:
            self._writer = tf.summary.create_file_writer(str(directory / "tensorboard"))
            self._log = directory / LOG_FILE
            if not self._log.exists():
                self._log.write_text(_COLUMNS, encoding="utf-8")

    def say(self, line: str) -> None:
        """Prints a line at once."""
        print(line, file=self._stream, flush=True)

    def step_done(self, step: int, result: StepResult | None) -> None:
        """Takes the result of an update.

        Args:
            step: updates done, this one included.
            result: what the update reported; None: it was skipped.
        """
        if result is not None:
            self._results.append(result)
        if self._results and (step % LOG_STEPS == 0 or step == self._train_steps):
            self._report(step)

    def pause(self) -> "_Pause":
        """Returns a context whose time counts as neither training nor progress."""
        return _Pause(self)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes values to TensorBoard."""
        if self._writer is None:
            return
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
        self._writer.flush()

    def _report(self, step: int) -> None:
        results, self._results = self._results, []
        fields = [
            np.array([[float(x) for x in (r.loss, r.tokens, r.share, r.gradient_norm)]])
            for r in results
        ]
        loss, tokens, share, norm = np.concatenate(fields).mean(axis=0)
        now = time.monotonic()
        rate = float(results[-1].rate)
        speed = tokens * len(results) / max(now - self._last_report, 1e-9)
        self._last_report = now
        left = self._train_steps - step
        per_step = (now - self._began) / max(step - self._start_step, 1)
        self.say(
            f"step {step:,}/{self._train_steps:,}  loss {loss:.4f}  rate {rate:.2e}  "
            f"{speed:,.0f} target tokens/s  {share:.1%} tokens  norm {norm:.2f}  "
            f"ETA {_clock(left * per_step)}"
        )
        self.scalars(
            step,
            {
                "loss": loss,
                "learning_rate": rate,
                "target_tokens_per_second": speed,
                "token_share": share,
                "gradient_norm": norm,
            },
        )
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(
                    f"{step}\t{loss:.6f}\t{rate:.8g}\t{speed:.0f}\t"
                    f"{share:.4f}\t{norm:.4f}\n"
                )


class _Pause:
    """Shifts a monitor's clocks by the time spent inside."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def __enter__(self) -> None:
        self._entered = time.monotonic()

    def __exit__(self, *_: object) -> None:
        spent = time.monotonic() - self._entered
        self._monitor._began += spent
        self._monitor._last_report += spent


def _clock(seconds: float) -> str:
    """Writes a duration as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
