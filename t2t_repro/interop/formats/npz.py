"""NumPy's npz files, without pickles."""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from t2t_repro.system.errors import UserError

# Weights hardly shrink, so a file that grows more than this when it is unpacked holds
# something else.
_MOST_UNPACKED = 20


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file by name; UserError if it is missing or damaged."""
    try:
        # NumPy leaves a damaged file open that it opened itself.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if len(set(file.files)) != len(file.files):
                raise ValueError("a name comes twice")
            unpacked = sum(each.file_size for each in file.zip.infolist())
            if unpacked > _MOST_UNPACKED * path.stat().st_size:
                raise ValueError("numbers that take no room")
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (
        *(ValueError, EOFError, KeyError, AttributeError, OverflowError),
        *(zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError),
    ):
        raise UserError(
            f"{path}: no npz of numbers; it is damaged, or cut off"
        ) from None
