"""Folders that are whole or not there: written aside, forced to disk, renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.system.locks import exclusive_lock

ASIDE = ".writing-"
"""How the name of a folder begins while it is written."""


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """Yields an empty folder that gets its name when the block has filled it.

    What had the name before is replaced then; if the block raises, it stays.

    Raises:
        OSError: the disk is full, or the folder around it cannot be written.
    """
    with folder_aside(final.with_name(f"{ASIDE}{final.name}")) as aside:
        yield aside
        put_in_place(aside, final)


@contextmanager
def folder_aside(aside: Path) -> Iterator[Path]:
    """Yields an empty folder that does not outlive the block under this name."""
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def put_in_place(aside: Path, final: Path) -> None:
    """Renames a folder, all of it on disk before its name; both have one parent."""
    _sync(*aside.rglob("*"), aside)
    # A folder cannot be renamed over a full one: the old one steps aside, as soon as
    # nobody reads it.
    replaced = final.with_name(f"{ASIDE}over-{final.name}")
    shutil.rmtree(replaced, ignore_errors=True)
    if final.exists():
        with exclusive_lock(final, lambda: None):
            final.rename(replaced)
    aside.rename(final)
    # Before the caller removes anything older.
    _sync(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _sync(*paths: Path) -> None:
    """Waits until files, and the names in folders, would survive a power cut."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
