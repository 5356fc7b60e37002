"""Training progress: console lines, TSV logs and TensorBoard events."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import tensorflow as tf

from t2t_repro.training.corpus_log import CorpusLog
from t2t_repro.training.metrics_log import MetricsLog
from t2t_repro.training.progress import Validation
from t2t_repro.training.step import StepResult

LOG_STEPS = 50
FIRST_REPORT_SECONDS = 30.0
LOG_FILE = "training_log.tsv"
TENSORBOARD = "tensorboard"
VALIDATION_FILE = "validation_log.tsv"
_COLUMNS = (
    *("step", "loss", "learning_rate", "target_tokens_per_second"),
    *("token_share", "norm"),
)

Unreported = list[list[float]]
"""Results of the steps since the last report.

Each has the values of `StepResult` and, with several corpora, the corpus's number.
"""
_VALUES = len(StepResult.__dataclass_fields__)


def validation_table(
    directory: Path, figure: str = "bleu", guarded: bool = False
) -> MetricsLog:
    """Returns the validation log of a model directory.

    Args:
        directory: Model directory.
        figure: Name of the score.
        guarded: Whether the log has the score of a guard set.
    """
    columns = ("step", "loss", f"greedy_{figure}") + ("guard",) * guarded
    return MetricsLog(directory / VALIDATION_FILE, columns)


def read_validations(table: MetricsLog, last: float = math.inf) -> list[Validation]:
    """Returns the validations in a `validation_table` up to the step `last`."""

    def number(text: str) -> float | None:
        return float(text) if text else None

    return [
        Validation(int(step), float(loss), *map(number, scores))
        for step, loss, *scores in table.rows()
        if int(step) <= last
    ]


class Monitor:
    """Reports the average results of steps every `LOG_STEPS` steps.

    Writes ``training_log.tsv``, ``validation_log.tsv`` and ``tensorboard/``. Log rows
    after `start_step` are removed.

    Args:
        directory: Model directory; None writes only to `stream` (for workers other than
            the chief).
        train_steps: Number of the last step.
        start_step: Step from which training resumes.
        stream: Stream for console output.
        unreported: Return value of `unreported()` at `start_step`.
        figure: Name of the validation score: "bleu"; "f1" for trees; "chrf" for
            languages without spaces for which sacreBLEU lacks a tokenizer.
        corpora: Log of several corpora; None for a single corpus.
        steps_per_epoch: Number of steps of an epoch; 0 does not report epochs.
        guarded: Whether validations have the score of a guard set.

    Attributes:
        ends_at: Time at which training ends at the latest, as `time.monotonic`.
    """

    def __init__(
        self,
        directory: Path | None,
        train_steps: int,
        start_step: int,
        stream: TextIO,
        unreported: Sequence[Sequence[float]] = (),
        figure: str = "bleu",
        corpora: CorpusLog | None = None,
        steps_per_epoch: int = 0,
        guarded: bool = False,
    ) -> None:
        self.ends_at = math.inf
        self._figure = figure
        self._corpora = corpora
        self._steps_per_epoch = steps_per_epoch
        self._train_steps = train_steps
        self._stream = stream
        self._results: Unreported = [list(result) for result in unreported]
        self._start_step = start_step
        self._began = self._last_report = time.monotonic()
        self._has_reported = False
        self._new_tokens = 0.0  # Number of target tokens since the last report.
        self._writer = tf.summary.create_noop_writer()
        self._log: MetricsLog | None = None
        self._validations: MetricsLog | None = None
        if directory is not None:
            self._writer = tf.summary.create_file_writer(bytes(directory / TENSORBOARD))
            self._log = MetricsLog(directory / LOG_FILE, _COLUMNS)
            self._log.cut(start_step)
            self._validations = validation_table(directory, figure, guarded)
            self._validations.cut(start_step)

    def log(self, line: str) -> None:
        """Prints a line and flushes the stream."""
        print(line, file=self._stream, flush=True)

    def record_step(self, step: int, result: StepResult | None) -> None:
        """Records the result of a step and reports if it is due.

        Args:
            step: Number of the step, from 1.
            result: Result of the step; None if it was skipped.
        """
        if result is not None:
            self._results.append(list(vars(result).values()))
            if self._corpora is not None:
                self._results[-1].append(self._corpora.corpus(step))
            self._new_tokens += result.tokens
        if self._results and (step % LOG_STEPS == 0 or step == self._train_steps):
            self._report(step)
        elif not self._has_reported:
            self._report_first_steps(step)

    def _report_first_steps(self, step: int) -> None:
        """Reports the speed once if the first full report takes long."""
        spent = time.monotonic() - self._began
        if spent < FIRST_REPORT_SECONDS:
            return
        self._has_reported = True
        # No ETA, because tracing and compilation are part of the first steps.
        per_step = spent / (step - self._start_step)
        self.log(
            f"step {step:,}/{self._train_steps:,}  {per_step:.1f} s per step so far, "
            f"with start-up; reports every {LOG_STEPS} steps"
        )

    def unreported(self) -> Unreported:
        """Returns the results since the last report, to be saved in checkpoints."""
        return [list(result) for result in self._results]

    def record_validation(
        self,
        step: int,
        loss: float,
        score: float | None,
        guard: float | None = None,
    ) -> None:
        """Records a validation.

        Args:
            step: Number of the step.
            loss: Validation loss in nats per token.
            score: Score of greedy translations; None if there are none.
            guard: Score of the guard set; None without one.
        """
        values = {"val_loss": loss}
        if score is not None:
            values[f"val_greedy_{self._figure}"] = score
        if guard is not None:
            values["guard"] = guard
        self.scalars(step, values)
        if self._validations is not None:
            text = "" if score is None else f"{score:.6f}"
            more = [] if guard is None else [f"{guard:.6f}"]
            self._validations.add(str(step), f"{loss:.6f}", text, *more)

    def was_validated(self, step: int) -> bool:
        """Returns whether a validation of the step is recorded.

        Workers other than the chief keep no records and always return True.
        """
        return self._validations is None or step in self._validations.steps()

    def validations(self) -> list[Validation]:
        """Returns the recorded validations in order; none on other workers."""
        return [] if self._validations is None else read_validations(self._validations)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Excludes the time of the block from speed and ETA."""
        entered = time.monotonic()
        yield
        spent = time.monotonic() - entered
        self._began += spent
        self._last_report += spent

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes values to TensorBoard, by tag."""
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
        self._writer.flush()

    def _report(self, step: int) -> None:
        rows, self._results = self._results, []
        results = np.array([row[:_VALUES] for row in rows])
        loss, _, token_ratio, norm = results[:, :4].mean(axis=0)
        now = time.monotonic()
        self._has_reported = True
        rate = results[-1, 4]
        speed = self._new_tokens / max(now - self._last_report, 1e-9)
        self._last_report, self._new_tokens = now, 0.0
        per_step = (now - self._began) / max(step - self._start_step, 1)
        seconds = min((self._train_steps - step) * per_step, self.ends_at - now)
        epoch = ""
        if self._steps_per_epoch:
            epoch = f"  epoch {step / self._steps_per_epoch:.2f}"
        self.log(
            f"step {step:,}/{self._train_steps:,}  loss {loss:.4f}  rate {rate:.2e}  "
            f"{speed:,.0f} target tokens/s  {token_ratio:.1%} tokens  norm {norm:.2f}  "
            f"ETA {_clock(max(seconds, 0.0))}{epoch}"
        )
        if self._corpora is not None:
            # Results before a change to several corpora have no corpus.
            known = [[*row[:2], row[_VALUES]] for row in rows if len(row) > _VALUES]
            self.log(self._corpora.report(step, known))
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
    """Formats a duration as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
