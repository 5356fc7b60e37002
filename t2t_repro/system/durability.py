"""Syncing of files and folders to disk, so that they survive a power failure.

A new file, a new folder and a new name are durable once their folder is synced as well.
"""

import errno
import os
from itertools import takewhile
from pathlib import Path

from t2t_repro.system.locks import open_descriptor

# CIFS and some FUSE file systems cannot sync folders; others may not be readable.
_CANNOT_SYNC = (
    *(errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS),
    *(errno.EACCES, errno.EPERM),
)


def sync(*paths: Path) -> None:
    """Flushes the contents of files, and the names in folders, to disk.

    Folders are skipped if they are not readable, or if the file system cannot sync
    folders. Raises OSError, which names the path.
    """
    for path in paths:
        try:
            with open_descriptor(path) as descriptor:
                os.fsync(descriptor)
        except OSError as error:
            if not (path.is_dir() and error.errno in _CANNOT_SYNC):
                error.filename = str(path)  # for the message of the commands
                raise


def make_folders(path: Path) -> None:
    """Creates a folder and its missing parents, and syncs their names to disk.

    Raises OSError if the folder cannot be created.
    """
    missing = list(takewhile(lambda each: not each.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    sync(*(folder.parent for folder in reversed(missing)))
