"""File of the checked pairs of a corpus, which an interrupted cleaning continues.

The first line describes the input and the rules. Each chunk is a line of JSON with the
results of its pairs and the number of bytes that follow: a line for each pair.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_repro.cleaning.report import Report
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock

MARKS = np.dtype([("verdict", "u1"), ("lengths", "<u4", (2, 2)), ("hashes", "<u8", 2)])
"""Results of a pair: code of the rule that drops it, or 0; words and characters of
source and target; hashes of the pair and of the source's letters."""

Marks = npt.NDArray[Any]
Place = tuple[str, str, str]
"""Place of a pair in its file, source and target."""


class Checked(NamedTuple):
    """Checked pairs of a chunk.

    Attributes:
        marks: MARKS (pairs,).
        report: Counts and examples of the repairs.
        lines: Place, source and target of each pair, separated by tabs.
    """

    marks: Marks
    report: Report
    lines: str


class CheckedFile:
    """Chunks of checked pairs, in the order of the corpus.

    Attributes:
        pairs: Number of pairs in the file.
    """

    def __init__(self, file: BinaryIO, start: int) -> None:
        self._file, self._start = file, start
        self.pairs = 0
        end = start
        for header, size in self._headers():
            if os.fstat(file.fileno()).st_size < file.tell() + size:
                break  # The run was killed while it wrote this chunk.
            self.pairs += len(_decode(header))
            end = file.tell() + size
        file.truncate(end)

    def append(self, checked: Checked) -> None:
        """Appends the pairs of a chunk."""
        lines = checked.lines.encode()
        header = {
            "bytes": len(lines),
            "report": checked.report.to_dict(),
            "marks": base64.b64encode(checked.marks.tobytes()).decode(),
        }
        self._file.seek(0, os.SEEK_END)
        self._file.write(json.dumps(header).encode() + b"\n" + lines)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.pairs += len(checked.marks)

    def read_marks(self) -> tuple[Marks, Report]:
        """Returns the results of all pairs and the report of their repairs."""
        marks, report = [np.zeros(0, MARKS)], Report()
        for header, _ in self._headers():
            marks.append(_decode(header))
            report.merge(Report.from_dict(header["report"]))
        return np.concatenate(marks), report

    def read_pairs(self) -> Iterator[Place]:
        """Yields the pairs. Several iterators must not overlap."""
        for _, size in self._headers():
            for line in self._file.read(size).decode().split("\n")[:-1]:
                place, source, target = line.split("\t")
                yield place, source, target

    def _headers(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yields the header of each chunk and the bytes after it.

        The position of the file is then after the header.
        """
        place = self._start
        while True:
            self._file.seek(place)
            line = self._file.readline()
            if not line.endswith(b"\n"):
                return
            header = json.loads(line)
            yield header, header["bytes"]
            place += len(line) + header["bytes"]


@contextmanager
def checked_file(path: Path, identity: Mapping[str, Any]) -> Iterator[CheckedFile]:
    """Opens the file of a cleaning, which is removed when the block ends.

    If the block is interrupted, the file remains for the next run. After a UserError,
    the input or the settings must change, so it is removed.

    Args:
        path: Path of the file.
        identity: Input and settings as JSON values. A file with another identity is
            replaced.

    Raises:
        UserError: Another process writes the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    first = json.dumps(identity).encode() + b"\n"

    def reject() -> None:
        raise UserError(
            f"{path} is being written by another process; wait for it to end or choose "
            "another output folder"
        )

    with open(path, "a+b") as file, exclusive_lock(path, reject):
        file.seek(0)
        if file.readline() != first:
            file.truncate(0)
            file.write(first)
        checked = CheckedFile(file, len(first))
        try:
            yield checked
        except UserError:
            path.unlink()
            raise
        path.unlink()


def _decode(header: Mapping[str, Any]) -> Marks:
    return np.frombuffer(base64.b64decode(header["marks"]), MARKS)
