"""Numbered versions of an export, each whole or not there."""

import shutil
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from t2t_repro.system.atomic_dir import ASIDE, folder_aside, put_in_place
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock, try_exclusive_lock


def check_format(export_dir: Path, file: str) -> None:
    """Refuses a folder with a version of another format: a server takes the newest.

    Args:
        export_dir: the folder of all versions; it need not exist.
        file: what each version of the format has, such as ``saved_model.pb``.

    Raises:
        UserError: a version has no such file.
    """
    for number in _numbers(export_dir):
        version = export_dir / str(number)
        if not (version / file).exists():
            raise UserError(
                f"--export_dir {export_dir}: {version} has no {file}, so it is of "
                "another format; name another folder"
            )


def write_version(export_dir: Path, write: Callable[[Path], object]) -> Path:
    """Writes the next version: ``export_dir/<integer>``.

    It gets its number when it is whole, so that a server never sees half of one.
    Several processes may write versions at the same time.

    Args:
        export_dir: the folder of all versions; made when missing.
        write: fills the empty folder that it is given.

    Raises:
        UserError: the folder cannot be written.
    """
    aside = export_dir / f"{ASIDE}{uuid.uuid4().hex}"
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            with exclusive_lock(export_dir, lambda: None):
                _remove_left_ones(export_dir)
                held.enter_context(folder_aside(aside))
                held.enter_context(exclusive_lock(aside, lambda: None))
            write(aside)
            with exclusive_lock(export_dir, lambda: None):
                final = export_dir / str(max(_numbers(export_dir), default=0) + 1)
                put_in_place(aside, final)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"--export_dir {export_dir}: {reason}") from None
    return final


def _remove_left_ones(export_dir: Path) -> None:
    """Removes what processes left that were killed."""
    for left in export_dir.glob(f"{ASIDE}*"):
        with try_exclusive_lock(left) as is_free:
            if is_free:
                shutil.rmtree(left, ignore_errors=True)


def _numbers(export_dir: Path) -> list[int]:
    """Returns the numbers of the versions that are there."""
    found = export_dir.iterdir() if export_dir.is_dir() else ()
    names = (path.name for path in found if path.is_dir())
    return [int(name) for name in names if name.isdecimal() and name.isascii()]
