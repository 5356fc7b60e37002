"""Folders that one process holds alone, or several hold for reading.

Locks (flock) end with their process, but on network file systems other machines may not
see them, or there are none. Between machines a file stands for its process.
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
BEAT_SECONDS = 10.0  # A machine that has not written for three of them is dead.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def exclusive_lock(folder: Path, taken: Callable[[], object]) -> Iterator[bool]:
    """Locks a folder (flock) until the context ends or the process dies.

    Where another process holds it, `taken` is called; if it returns, this one waits.
    Yields whether the file system has locks; without, nobody is kept out.
    """
    with _opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            yield False
            return
        yield True


def this_machine() -> str:
    """Returns the host's name and what tells this start of it from all others."""
    boot = _BOOT_ID.read_text() if _BOOT_ID.exists() else ""
    return f"{socket.gethostname()} {boot}".strip()


@contextmanager
def heartbeat_lock(
    folder: Path, name: str, log: Callable[[str], object], taken: Callable[[], object]
) -> Iterator[None]:
    """Keeps other machines out of a folder by a file, which is renewed all the while.

    `name` is what they see. Where the file has another name, this watches it, and tells
    so; a file that does not change was left by a machine that died, and is replaced.
    The machines' clocks are not compared. `taken` must raise.
    """
    sign = folder / SIGN
    found = _read(sign)
    if found is not None:
        if found[0] != name:
            seconds = 3 * BEAT_SECONDS
            log(
                f"{found[0].partition(' ')[0]} holds {folder}; looking for "
                f"{seconds:.0f} s whether it is still there"
            )
            time.sleep(seconds)
            if _read(sign) != found:
                taken()
        # Of several who see a dead one, one gets it, and nobody a living one.
        aside = folder / f".{SIGN}.{os.getpid()}-{threading.get_ident()}"
        try:
            sign.rename(aside)
        except FileNotFoundError:
            taken()
        if _read(aside) != found:
            aside.rename(sign)
            taken()
        aside.unlink()
    try:
        with open(sign, "x", encoding="utf-8") as file:
            file.write(name)
    except FileExistsError:
        taken()
    except OSError:  # The disk is full.
        sign.unlink(missing_ok=True)
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
        found = _read(sign)
        if found is not None and found[0] == name:
            sign.unlink()


def _read(sign: Path) -> tuple[str, int] | None:
    """Returns a file's text and when it was renewed; None: it is not there."""
    try:
        # What is opened is asked of the server, not of a cache.
        with open(sign, encoding="utf-8") as file:
            return file.read(), os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None


@contextmanager
def shared_lock(folder: Path) -> Iterator[None]:
    """Holds a folder together with other readers, so that nobody removes it.

    On a file system without locks it is read all the same.

    Raises:
        FileNotFoundError: it is not there, or was removed while this waited.
    """
    with _opened(folder) as descriptor:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        # Whoever held it before may have removed it, or put another in its place.
        if not os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            raise FileNotFoundError(folder)
        yield


@contextmanager
def try_exclusive_lock(folder: Path) -> Iterator[bool]:
    """Yields whether nobody holds a folder; then nobody will until the context ends."""
    with _opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # A file system without locks.
            pass
        yield True


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Yields the descriptor of a folder, whose closing gives its locks back."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
