"""TSV table of metrics by step, which a resumed training continues exactly."""

import os
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

_MOST_DIGITS = 18  # Python converts at most 4,300 digits to an integer.


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
        return [int(step) for step, *_ in self.rows()]

    def cut(self, step: int) -> None:
        """Removes rows of steps after `step` and incomplete rows."""
        rows = [row for row in self.rows() if int(row[0]) <= step]
        text = "".join("\t".join(row) + "\n" for row in (self.columns, *rows))
        if not self.path.exists() or self._text() != text:
            write_text_atomically(self.path, text)

    def add(self, *values: str) -> None:
        """Appends a row with one value per column, and syncs it to disk.

        Raises UserError if the disk is full or fails.
        """
        try:
            with self.path.open("ab") as file:
                file.write("\t".join(values).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}") from error

    def rows(self) -> list[list[str]]:
        """Returns the values of the complete rows without the header."""
        lines = self._text().split("\n")[:-1] if self.path.exists() else []
        rows = [line.split("\t") for line in lines]
        size = len(self.columns)
        return [
            row
            for row in rows
            if len(row) == size and row[0].isdecimal() and len(row[0]) <= _MOST_DIGITS
        ]

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")
