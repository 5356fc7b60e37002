"""TSV table of metrics by step, which a resumed training continues exactly."""

import os
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.system.atomic_file import write_text_atomically


@dataclass(frozen=True)
class MetricsLog:
    """TSV file with one row per step.

    A killed training run may have written rows for steps after its last checkpoint.
    These steps will be repeated, so `cut` removes their rows.

    Attributes:
        path: Path of the file.
        columns: Names of the columns; the first is "step".
    """

    path: Path
    columns: tuple[str, ...]

    def steps(self) -> list[int]:
        """Returns the steps of all rows, in order."""
        return [int(row.partition("\t")[0]) for row in self._rows()]

    def cut(self, step: int) -> None:
        """Removes rows of steps after `step` and incomplete rows."""
        rows = [row for row in self._rows() if int(row.partition("\t")[0]) <= step]
        text = "".join(f"{row}\n" for row in ("\t".join(self.columns), *rows))
        if not self.path.exists() or self._text() != text:
            write_text_atomically(self.path, text)

    def add(self, *values: str) -> None:
        """Appends a row with one value per column, and syncs it to disk."""
        with self.path.open("ab", buffering=0) as file:
            file.write("\t".join(values).encode() + b"\n")
            os.fsync(file.fileno())

    def _rows(self) -> list[str]:
        """Returns the complete rows without the header and line ends."""
        lines = self._text().split("\n")[:-1] if self.path.exists() else []
        return [line for line in lines if self._is_row(line)]

    def _is_row(self, line: str) -> bool:
        values = line.split("\t")
        return len(values) == len(self.columns) and values[0].isdecimal()

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")
