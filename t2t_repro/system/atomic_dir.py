"""Atomic writing of folders: filled under a temporary name, synced, then renamed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.system.durability import make_folders, sync
from t2t_repro.system.locks import exclusive_lock

ASIDE = ".writing-"
"""Prefix of a folder's temporary name."""


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
        make_folders(aside.parent)
        aside.mkdir()  # Follows no link, which rmtree() leaves.
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def put_in_place(aside: Path, final: Path) -> None:
    """Syncs a temporary folder to disk and renames it to `final`, in the same parent.

    Waits until no other process reads an existing `final`, then replaces it.
    """
    sync(*aside.rglob("*"), aside)
    # rename() cannot replace a folder that is not empty, so the old one moves first.
    replaced = final.with_name(f"{ASIDE}over-{final.name}")
    shutil.rmtree(replaced, ignore_errors=True)
    if final.exists():
        with exclusive_lock(final, lambda: None):
            final.rename(replaced)
    try:
        aside.rename(final)
    except OSError:
        if replaced.exists():
            replaced.rename(final)
        raise
    # The caller may delete older folders, so the new name must be on disk first.
    sync(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)
