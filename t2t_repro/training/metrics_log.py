"""A table of numbers by step that a resumed training continues exactly."""

import os
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.system.atomic_file import write_text_atomically


@dataclass(frozen=True)
class MetricsLog:
    """A file of tab-separated rows, each led by its step.

    A killed training has written rows of updates that are lost, and will be made and
    written again; `cut` takes them off first. `columns` begins with "step".
    """

    path: Path
    columns: tuple[str, ...]

    def steps(self) -> list[int]:
        """Returns the steps that have a row, in the order of the rows."""
        return [int(row.partition("\t")[0]) for row in self._rows()]

    def cut(self, step: int) -> None:
        """Removes the rows of later steps, and one that was half written."""
        rows = [row for row in self._rows() if int(row.partition("\t")[0]) <= step]
        text = "".join(f"{row}\n" for row in ("\t".join(self.columns), *rows))
        if not self.path.exists() or self._text() != text:
            write_text_atomically(self.path, text)

    def add(self, *values: str) -> None:
        """Writes a row, a value a column, in one piece, and forces it to disk."""
        with self.path.open("ab", buffering=0) as file:
            file.write("\t".join(values).encode() + b"\n")
            os.fsync(file.fileno())

    def _rows(self) -> list[str]:
        """Returns the whole rows, without line ends."""
        lines = self._text().split("\n")[:-1] if self.path.exists() else []
        return [line for line in lines if self._is_row(line)]

    def _is_row(self, line: str) -> bool:
        values = line.split("\t")
        return len(values) == len(self.columns) and values[0].isdecimal()

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")
