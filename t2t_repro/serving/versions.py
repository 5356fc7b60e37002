"""Numbered versions of an export, each whole or not there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from t2t_repro.errors import UserError


def next_version(export_dir: Path) -> Path:
    """Returns the folder of the version after the last: ``export_dir/<integer>``."""
    found = export_dir.iterdir() if export_dir.is_dir() else ()
    numbers = [int(path.name) for path in found if _is_version(path)]
    return export_dir / str(max(numbers, default=0) + 1)


@contextmanager
def new_version(final: Path) -> Iterator[Path]:
    """Makes a version that takes its name when it is whole.

    A server that polls the folder of all versions never sees half of one: its name is
    no number until then.

    Args:
        final: the version's folder, from `next_version`.

    Yields:
        An empty folder to write into.

    Raises:
        UserError: the folder cannot be written.
    """
    aside = final.with_name(f".writing-{final.name}")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        yield aside
        aside.rename(final)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"--export_dir {final.parent}: {reason}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _is_version(path: Path) -> bool:
    return path.is_dir() and path.name.isdecimal() and path.name.isascii()
