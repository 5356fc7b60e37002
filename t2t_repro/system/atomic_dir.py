"""Atomic writing of folders: filled under a temporary name, synced, then renamed."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.system.locks import exclusive_lock, open_descriptor

ASIDE = ".writing-"
"""Prefix of a folder's temporary name."""
_CANNOT_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """Yields an empty folder that is renamed to `final` when the block ends.

    An existing `final` is replaced at that moment. If the block raises, `final` stays
    unchanged.

    Raises:
        OSError: The disk is full or the parent folder is not writable.
    """
    with temporary_folder(final.with_name(f"{ASIDE}{final.name}")) as aside:
        yield aside
        put_in_place(aside, final)


@contextmanager
def temporary_folder(aside: Path) -> Iterator[Path]:
    """Yields an empty temporary folder; deletes it unless the block renamed it."""
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def put_in_place(aside: Path, final: Path) -> None:
    """Syncs a temporary folder to disk and renames it to `final`, in the same parent.

    Waits until no other process reads an existing `final`, then replaces it.
    """
    _sync(*aside.rglob("*"), aside)
    # rename() cannot replace a folder that is not empty, so the old one moves first.
    replaced = final.with_name(f"{ASIDE}over-{final.name}")
    shutil.rmtree(replaced, ignore_errors=True)
    if final.exists():
        with exclusive_lock(final, lambda: None):
            final.rename(replaced)
    aside.rename(final)
    # The caller may delete older folders, so the new name must be on disk first.
    _sync(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _sync(*paths: Path) -> None:
    """Flushes files and folder entries to disk, so that they survive a power cut."""
    for path in paths:
        with open_descriptor(path) as descriptor:
            try:
                os.fsync(descriptor)
            except OSError as error:
                # CIFS and some FUSE file systems cannot sync folders.
                if not (path.is_dir() and error.errno in _CANNOT_SYNC):
                    error.filename = str(path)  # for the message of the commands
                    raise
