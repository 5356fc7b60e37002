"""One training, as the `train` command describes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.model_dir import ModelDir


@dataclass(frozen=True)
class Run:
    """Everything that one training needs to know."""

    hparams: HParams
    problem: Problem
    data_dir: Path  # Of vocabulary and shards.
    model_dir: ModelDir
    strategy: tf.distribute.Strategy
    stream: TextIO  # Where progress is told.
    vocab_file: Path | None = None  # None: the model's, if given or imported.
    accepted: frozenset[str] = frozenset()  # May differ; see `check_accepted`.
    profiled: tuple[int, int] = (0, 0)  # First, last update to trace; 0: none.

    def log(self, line: str) -> None:
        """Tells a line at once."""
        print(line, file=self.stream, flush=True)
