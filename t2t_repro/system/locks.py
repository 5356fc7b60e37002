"""Exclusive and shared locks on folders.

flock locks end with their process, but network file systems may not support them or may
hide them from other machines. A lock file with a heartbeat works across machines.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIGN = "training.lock"
BEAT_SECONDS = 10.0  # A lock file that is not renewed for three heartbeats is stale.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def exclusive_lock(folder: Path, on_locked: Callable[[], object]) -> Iterator[bool]:
    """Holds an exclusive flock lock on a folder until the block ends.

    If another process holds a lock, calls `on_locked` and, if that returns, waits for
    the release of the lock. Yields whether the file system supports locks; if not, the
    block runs without a lock.
    """
    with open_descriptor(folder) as descriptor:
        locked = _try_lock(descriptor)
        if locked is False:
            on_locked()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield locked is not None


def this_machine() -> str:
    """Returns the host name and the boot ID, which changes at each restart."""
    boot = _BOOT_ID.read_text() if _BOOT_ID.exists() else ""
    return f"{socket.gethostname()} {boot}".strip()


@contextmanager
def heartbeat_lock(
    folder: Path,
    name: str,
    log: Callable[[str], object],
    on_locked: Callable[[], object],
) -> Iterator[None]:
    """Locks a folder against other machines with a lock file that is renewed.

    A lock file of another owner is watched for three heartbeats. If it does not change,
    its owner has died and the lock is taken over. Clocks of different machines are not
    compared.

    Args:
        folder: Folder to lock.
        name: Name of the owner, written to the lock file.
        log: Function called with a message before the wait.
        on_locked: Function called if another machine holds the lock; it must raise.
    """
    sign = folder / SIGN
    previous = _read(sign)
    if previous is not None:
        if previous[0] != name:
            seconds = 3 * BEAT_SECONDS
            log(
                f"{previous[0].partition(' ')[0]} has locked {folder}; waiting "
                f"{seconds:.0f} s to see whether it is still running"
            )
            time.sleep(seconds)
            if _read(sign) != previous:
                on_locked()
        # rename() is atomic: only one machine succeeds in removing a stale lock. A lock
        # that was renewed or replaced in the meantime is put back.
        aside = folder / f".{SIGN}.{os.getpid()}-{threading.get_ident()}"
        try:
            sign.rename(aside)
        except FileNotFoundError:
            on_locked()
        if _read(aside) != previous:
            aside.rename(sign)
            on_locked()
        aside.unlink()
    try:
        with open(sign, "x", encoding="utf-8") as file:
            file.write(name)
    except FileExistsError:
        on_locked()
    except OSError as error:  # For example, the disk is full.
        sign.unlink(missing_ok=True)
        error.filename = str(sign)  # for the message of the commands
        raise
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            with suppress(OSError):
                os.utime(sign)

    beating = threading.Thread(target=beat, daemon=True)
    beating.start()
    try:
        yield
    finally:
        ended.set()
        beating.join()
        current = _read(sign)
        if current is not None and current[0] == name:
            sign.unlink()


def _read(sign: Path) -> tuple[str, int] | None:
    """Returns a lock file's text and modification time (ns); None if it is missing."""
    try:
        # Opening the file fetches fresh attributes from the server; stat may use a
        # cache on network file systems.
        with open(sign, encoding="utf-8") as file:
            return file.read(), os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None


@contextmanager
def shared_lock(folder: Path) -> Iterator[None]:
    """Holds a shared lock on a folder, which prevents its removal.

    On a file system without locks, the block runs without one.

    Raises:
        FileNotFoundError: The folder is missing, or was removed or replaced before
            the lock was acquired.
    """
    with open_descriptor(folder) as descriptor:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        # The previous holder of the lock may have removed or replaced the folder.
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileNotFoundError(folder)
        yield


@contextmanager
def try_exclusive_lock(folder: Path) -> Iterator[bool]:
    """Tries to lock a folder exclusively; yields False if another process holds it.

    On a file system without locks it yields True.
    """
    with open_descriptor(folder) as descriptor:
        yield _try_lock(descriptor) is not False


def _try_lock(descriptor: int) -> bool | None:
    """Tries to acquire an exclusive lock; returns None if they are not supported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def open_descriptor(path: Path) -> Iterator[int]:
    """Yields a descriptor of a file or folder; closing it releases its locks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
