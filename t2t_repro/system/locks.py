"""Folders that one process holds alone, or several hold for reading."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone_in(folder: Path, taken: Callable[[], object]) -> Iterator[None]:
    """Holds a folder for this process until the context ends.

    The folder itself is locked (flock): nothing is left of the lock when a process
    dies.

    Args:
        folder: it must exist.
        taken: called when another process holds it; if it returns, this one waits.
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
    """Holds a folder together with other readers: `if_unread` passes it over.

    A file system without locks cannot be held; its folders are read all the same.

    Args:
        folder: what is read.

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
    """Holds a folder alone unless somebody reads in it, without waiting.

    Args:
        folder: what is to be removed.

    Yields:
        Whether nobody else holds it; then nobody will until the context ends.
    """
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
