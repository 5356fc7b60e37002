"""Syncing of files and folders to disk, so that they survive a power failure.

A new file, a new folder and a new name are durable once their folder is synced as well.
"""

import errno
import os
from itertools import takewhile
from pathlib import Path

_CANNOT_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS)


def sync(*paths: Path) -> None:
    """Flushes the contents of files, and the names in folders, to disk.

    Folders are skipped if they are not readable, or if the file system cannot sync
    folders. Raises OSError, which names the path.
    """
    for path in paths:
        is_folder = path.is_dir()
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except PermissionError:
            if is_folder:
                continue
            raise
        try:
            os.fsync(descriptor)
        except OSError as error:
            # CIFS and some FUSE file systems cannot sync folders.
            if not (is_folder and error.errno in _CANNOT_SYNC):
                error.filename = str(path)  # for the message of the commands
                raise
        finally:
            os.close(descriptor)


def make_folders(path: Path) -> None:
    """Creates a folder and its missing parents, and syncs their names to disk.

    Raises OSError if the folder cannot be created.
    """
    missing = list(takewhile(lambda each: not each.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    sync(*(folder.parent for folder in reversed(missing)))
