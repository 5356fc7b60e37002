"""Numbered versions of an export, written atomically."""

import re
import shutil
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from t2t_repro.system.atomic_dir import ASIDE, put_in_place, temporary_folder
from t2t_repro.system.durability import make_folders
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock, try_exclusive_lock

SAVED_MODEL = "saved_model.pb"
"""Main file of a SavedModel."""

EXTRA_FOLDER = "assets.extra"
"""Folder of a SavedModel for files that the graph does not use."""

TOKENIZER = f"{EXTRA_FOLDER}/tokenizer"
"""Folder with the vocabulary and its tokenizer, if the SavedModel takes ids."""


def check_format(export_dir: Path, file: str, takes_ids: bool = False) -> None:
    """Rejects a folder from which the format cannot be loaded.

    A server always loads the newest version, so all versions need the same format and
    the same kind of input. TensorFlow expands patterns in the path of a SavedModel.

    Args:
        export_dir: Folder of all versions, which may be missing.
        file: File that each version of the format contains, e.g. ``saved_model.pb``.
        takes_ids: Whether the new version is a SavedModel that takes ids.

    Raises:
        UserError: A version does not contain the file or takes another input, or the
            path of a SavedModel is a pattern.
    """
    path = str(export_dir.resolve())
    if file.endswith(".pb") and re.search("[*?[\\\\\udc80-\udcff]", path):
        raise UserError(
            f"--export_dir {export_dir}: TensorFlow cannot load a SavedModel from a "
            "path with *, ?, [, a backslash or invalid UTF-8; name another folder"
        )
    for number in _numbers(export_dir):
        version = export_dir / str(number)
        if not (version / file).exists():
            raise UserError(
                f"--export_dir {export_dir}: {version} does not contain {file}, so it "
                "was exported in another format; name another folder"
            )
        if (version / TOKENIZER).exists() != takes_ids:
            given, other = ("ids", "text") if takes_ids else ("text", "ids")
            raise UserError(
                f"--export_dir {export_dir}: {version} takes {other}, so clients of "
                f"--input {given} would fail; name another folder"
            )


def find_newest(export_dir: Path) -> Path:
    """Returns the folder of the newest version, which must be a SavedModel.

    Raises:
        UserError: The folder contains no version, or one of another format.
    """
    where = f"--export_dir {export_dir}"
    if (export_dir / SAVED_MODEL).exists():
        raise UserError(
            f"{where} is a single version; name its folder, "
            f"{export_dir.resolve().parent}"
        )
    newest = export_dir / str(max(_numbers(export_dir), default=1))
    if not (newest / SAVED_MODEL).exists():
        raise UserError(
            f"{where} does not contain {newest.name}/{SAVED_MODEL}; name a folder that "
            "python -m t2t_repro.export has written as saved_model"
        )
    return newest


def write_version(export_dir: Path, write: Callable[[Path], object]) -> Path:
    """Writes the next version, ``export_dir/<integer>``, and returns its folder.

    The folder is renamed to its number when it is complete, so a server never loads an
    incomplete version. Several processes may write versions in parallel.

    Args:
        export_dir: Folder of all versions; created if missing.
        write: Function that writes the version to an empty folder.

    Raises:
        UserError: The folder cannot be written.
    """
    aside = export_dir / f"{ASIDE}{uuid.uuid4().hex}"
    try:
        make_folders(export_dir)
        with ExitStack() as stack:
            with exclusive_lock(export_dir, lambda: None):
                _remove_leftovers(export_dir)
                stack.enter_context(temporary_folder(aside))
                stack.enter_context(exclusive_lock(aside, lambda: None))
            write(aside)
            with exclusive_lock(export_dir, lambda: None):
                final = export_dir / str(max(_numbers(export_dir), default=0) + 1)
                put_in_place(aside, final)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"--export_dir {export_dir}: {reason}") from None
    return final


def _remove_leftovers(export_dir: Path) -> None:
    """Removes incomplete versions that killed processes left behind."""
    for folder in export_dir.glob(f"{ASIDE}*"):
        with try_exclusive_lock(folder) as is_free:
            if is_free:
                shutil.rmtree(folder, ignore_errors=True)


def _numbers(export_dir: Path) -> list[int]:
    """Returns the numbers of the existing versions."""
    paths = export_dir.iterdir() if export_dir.is_dir() else ()
    names = (path.name for path in paths if path.is_dir())
    return [int(name) for name in names if name.isdecimal() and name.isascii()]
