"""Text file whose writing can be resumed after an interruption.

The text is appended to `NAME.partial`. `NAME.partial.journal` records the inputs and
settings and, after each append, the number of complete bytes and the caller's state. A
killed program leaves both files. The next run truncates the text to the last complete
append and continues. At the end, the text is renamed to `NAME` and the journal deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from t2t_repro.system.durability import sync
from t2t_repro.system.errors import UserError


@dataclass
class ResumableFile:
    """Unfinished file, opened by `resumable_file`.

    Attributes:
        partial: Path of the unfinished text.
    """

    partial: Path
    _text: BinaryIO
    _journal: Path
    _log: BinaryIO

    @property
    def state(self) -> dict[str, Any]:
        """State recorded by the last `append`; empty before the first."""
        # It is read from the journal because Ctrl-C may interrupt `append` after it
        # wrote the record.
        _, last, _ = _records(self.partial, self._journal)
        state: dict[str, Any] = last.get("state", {})
        return state

    def append(self, text: str, state: Mapping[str, Any]) -> None:
        """Appends lines and records the state from which the caller can resume.

        Args:
            text: Complete lines.
            state: Values that JSON can represent.

        Raises:
            UserError: The disk is full; earlier lines are kept.
        """
        with _write_errors(self.partial):
            _write(self._text, text.encode())
            size = os.fstat(self._text.fileno()).st_size
            _write(self._log, _line({"bytes": size, "state": dict(state)}))


@contextmanager
def resumable_file(
    path: str | os.PathLike[str], identity: Mapping[str, Any]
) -> Iterator[ResumableFile]:
    """Opens a file for writing, or resumes an interrupted one.

    If the block raises, the unfinished file is kept. Otherwise it replaces `path`.

    Args:
        path: Path of the complete file. If it is a link, the link's target is replaced.
        identity: Inputs and settings that determine the text, by name, as JSON values.
            An unfinished file is resumed only if its values are equal.

    Raises:
        UserError: The unfinished file has another identity, is damaged, or is being
            written by another process; or the folder is missing or not writable, or
            the disk is full.
    """
    final = Path(path).resolve()
    partial = final.with_name(f"{final.name}.partial")
    journal = final.with_name(f"{final.name}.partial.journal")
    if partial.exists() and not journal.exists():
        raise UserError(
            f"cannot resume {partial}: its journal {journal.name} is missing; remove "
            f"{partial.name} or choose another output file"
        )
    with ExitStack() as stack:
        with _write_errors(path):
            log = stack.enter_context(open(journal, "ab", buffering=0))
            _lock(partial, journal, log)
            size = _begin_or_resume(partial, journal, log, identity)
            # A power failure must not leave the text without its journal.
            sync(final.parent)
            text = stack.enter_context(open(partial, "ab", buffering=0))
            text.truncate(size)
            sync(final.parent)
        yield ResumableFile(partial, text, journal, log)
        with _write_errors(path):
            os.replace(partial, final)
            sync(final.parent)
            journal.unlink()


def _lock(partial: Path, journal: Path, log: BinaryIO) -> None:
    """Locks the journal until it is closed.

    Raises UserError if another process holds the lock or has finished the file.
    """
    try:
        fcntl.flock(log.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have completed the file after the journal was opened.
        ours = os.path.samestat(os.fstat(log.fileno()), os.stat(journal))
    except (BlockingIOError, FileNotFoundError):
        ours = False
    if not ours:
        raise UserError(
            f"{partial} is being written by another process; wait for it to end or "
            "choose another output file"
        )


def _begin_or_resume(
    partial: Path, journal: Path, log: BinaryIO, identity: Mapping[str, Any]
) -> int:
    """Starts or checks the journal; returns the number of complete bytes of text."""
    if not partial.exists():  # The file is new, or the user removed the partial text.
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
        raise _damage_error(partial)
    return size


def _records(
    partial: Path, journal: Path
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Returns a journal's first and last record and the end of the last, in bytes.

    A last line without a line end is ignored: the program was killed while writing it.
    """
    whole, end, _ = journal.read_bytes().rpartition(b"\n")
    try:
        first, *others = [json.loads(line) for line in whole.split(b"\n")]
        if not all(isinstance(record, dict) for record in (first, *others)):
            raise ValueError
    except (ValueError, RecursionError):
        raise _damage_error(partial) from None
    return first, others[-1] if others else {}, len(whole + end)


def _compare(partial: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises UserError if the identities of the earlier and this run differ."""
    changed = [
        f"{key} was {before.get(key)}, is now {now.get(key)}"
        for key in dict.fromkeys([*now, *before])
        if before.get(key) != now.get(key)
    ]
    if changed:
        raise UserError(
            f"cannot resume {partial}: {'; '.join(changed)}; use the earlier settings "
            "or remove that file to start over"
        )


def _damage_error(partial: Path) -> UserError:
    return UserError(f"{partial} does not match its journal; remove it to start over")


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _write(file: BinaryIO, data: bytes) -> None:
    """Writes all bytes, in one system call if possible, and syncs them to disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


@contextmanager
def _write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Converts an OSError of the block to a UserError that names `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
