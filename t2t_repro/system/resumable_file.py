"""A text file that a program goes on writing where it was interrupted.

The text grows in `NAME.partial`. `NAME.partial.journal` says what it is made from and,
after each piece, how many bytes are whole. A program that is killed leaves both; the
next one cuts the text back to its last whole piece. When the text is complete, it gets
its name and the journal goes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from t2t_repro.system.errors import UserError


@dataclass
class ResumableFile:
    """A file that is being written, as `resumable_file` opens it.

    Attributes:
        partial: where the text grows until it is complete.
    """

    partial: Path
    _text: BinaryIO
    _journal: Path
    _log: BinaryIO

    @property
    def state(self) -> dict[str, Any]:
        """What was given with the last piece; empty before the first."""
        # From the journal: Ctrl-C may come when a piece was just written.
        _, last, _ = _records(self.partial, self._journal)
        found: dict[str, Any] = last.get("state", {})
        return found

    def append(self, text: str, state: Mapping[str, Any]) -> None:
        """Writes whole lines, and what is needed to go on after them, as JSON.

        Raises:
            UserError: the disk is full; what was written before stays.
        """
        with _write_errors(self.partial):
            _write(self._text, text.encode())
            size = os.fstat(self._text.fileno()).st_size
            _write(self._log, _line({"bytes": size, "state": dict(state)}))


@contextmanager
def resumable_file(
    path: str | os.PathLike[str], identity: Mapping[str, Any]
) -> Iterator[ResumableFile]:
    """Opens a file for writing, or for going on with it.

    Args:
        path: the file, replaced when the text is complete; of a link, what it leads
            to. If the block ends by an exception, what was written stays.
        identity: what the text is made from, by name, as JSON. What an earlier program
            wrote is gone on with only if it is the same.

    Raises:
        UserError: what is there was made from something else, is damaged, or is being
            written by another process; or the folder is missing or not writable, or
            the disk is full.
    """
    final = Path(path).resolve()
    partial = final.with_name(f"{final.name}.partial")
    journal = final.with_name(f"{final.name}.partial.journal")
    if partial.exists() and not journal.exists():
        raise UserError(
            f"{partial} is in the way: {journal.name}, which would say what it is, is "
            "missing; remove it or choose another name."
        )
    with _write_errors(path):
        log = open(journal, "ab", buffering=0)  # noqa: SIM115
    with log:
        with _write_errors(path):
            _lock(partial, journal, log)
            size = _begin_or_go_on(partial, journal, log, identity)
            text = open(partial, "ab", buffering=0)  # noqa: SIM115
        with text:
            with _write_errors(path):
                text.truncate(size)
            yield ResumableFile(partial, text, journal, log)
        with _write_errors(path):
            os.replace(partial, final)
            journal.unlink()


def _lock(partial: Path, journal: Path, log: BinaryIO) -> None:
    """Keeps other processes away until the journal is closed."""
    try:
        fcntl.flock(log.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another one may have completed the file since the journal was opened.
        ours = os.path.samestat(os.fstat(log.fileno()), os.stat(journal))
    except (BlockingIOError, FileNotFoundError):
        ours = False
    if not ours:
        raise UserError(
            f"{partial} is being written by another process; wait for it or choose "
            "another name."
        )


def _begin_or_go_on(
    partial: Path, journal: Path, log: BinaryIO, identity: Mapping[str, Any]
) -> int:
    """Returns how many bytes of the text are whole."""
    if not partial.exists():  # Nothing was written yet, or the person removed it.
        log.truncate(0)
        try:
            _write(log, _line(dict(identity)))
        except OSError:
            journal.unlink()
            raise
        return 0
    first, last, whole = _records(partial, journal)
    _compare(partial, first, identity)
    log.truncate(whole)
    size: int = last.get("bytes", 0)
    if partial.stat().st_size < size:
        raise _damaged(partial)
    return size


def _records(
    partial: Path, journal: Path
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Reads the first record of a journal and the last, and where the last ends.

    A line without its end was being written when the program was killed.
    """
    whole, end, _ = journal.read_bytes().rpartition(b"\n")
    try:
        first, *others = [json.loads(line) for line in whole.split(b"\n")]
        if not all(isinstance(record, dict) for record in (first, *others)):
            raise ValueError
    except (ValueError, RecursionError):
        raise _damaged(partial) from None
    return first, others[-1] if others else {}, len(whole + end)


def _compare(partial: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses to mix texts that were made from different things."""
    changed = [
        f"{key} {before.get(key)} there, {now.get(key)} here"
        for key in dict.fromkeys([*now, *before])
        if before.get(key) != now.get(key)
    ]
    if changed:
        raise UserError(
            f"{partial} was begun otherwise: {'; '.join(changed)}; run it as it was, "
            "or remove that file to begin anew."
        )


def _damaged(partial: Path) -> UserError:
    return UserError(
        f"{partial} and its journal do not agree; remove it to begin anew."
    )


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _write(file: BinaryIO, data: bytes) -> None:
    """Writes all bytes, in one call if the system allows, and forces them to disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


@contextmanager
def _write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes what the system refuses a mistake that the user can mend."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}.") from error
