"""Folders that one process holds alone, or several hold for reading."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone_in(folder: Path, taken: Callable[[], object]) -> Iterator[None]:
    """Locks a folder (flock) until the context ends or the process dies.

    Where another process holds it, `taken` is called; if it returns, this one waits.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def reading_in(folder: Path) -> Iterator[None]:
    """Holds a folder together with other readers, so that nobody removes it.

    On a file system without locks it is read all the same.

    Raises:
        FileNotFoundError: it is not there, or was removed while this waited.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        # Whoever held it before may have removed it, or put another in its place.
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def if_unread(folder: Path) -> Iterator[bool]:
    """Yields whether nobody holds a folder; then nobody will until the context ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # A file system without locks.
            pass
        yield True
    finally:
        os.close(descriptor)
