"""Loss and number of tokens of each corpus of a mixture, since the last report."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from t2t_repro.batches.mixture import Mixture
from t2t_repro.training.metrics_log import MetricsLog

CORPORA_FILE = "corpora_log.tsv"
_COLUMNS = ("step", "corpus", "steps", "loss", "target_tokens")


class CorpusLog:
    """Writes ``corpora_log.tsv``: a row per report and corpus.

    Args:
        names: Names of the corpora.
        mixture: Order of the corpora.
        directory: Model directory; None writes no file.
        start_step: Step from which training resumes; later rows are removed.
    """

    def __init__(
        self,
        names: Sequence[str],
        mixture: Mixture,
        directory: Path | None,
        start_step: int,
    ) -> None:
        self._names, self._mixture = names, mixture
        self._log: MetricsLog | None = None
        if directory is not None:
            self._log = MetricsLog(directory / CORPORA_FILE, _COLUMNS)
            self._log.cut(start_step)

    def corpus(self, step: int) -> int:
        """Returns the number of the corpus of a step; steps count from 1."""
        return self._mixture.corpus(step - 1)

    def report(self, step: int, rows: Sequence[Sequence[float]]) -> str:
        """Adds a row for each corpus and returns a line for people.

        Args:
            step: Number of the last step.
            rows: Loss, target tokens and number of the corpus of each step.
        """
        parts = []
        for corpus, name in enumerate(self._names):
            own = np.array([row[:2] for row in rows if row[2] == corpus])
            if not len(own):
                continue
            loss, tokens = own[:, 0].mean(), own[:, 1].sum()
            parts.append(f"{name} {loss:.4f} ({tokens:,.0f} target tokens)")
            if self._log is not None:
                self._log.add(
                    *(str(step), name, str(len(own)), f"{loss:.6f}", f"{tokens:.0f}")
                )
        return "  loss of " + ", ".join(parts)
