"""Reader of NumPy's npz files that rejects pickled objects."""

from pathlib import Path

import numpy as np

from t2t_repro.interop.formats.text import reject_pointer
from t2t_repro.system.damage import DAMAGED_ARRAY
from t2t_repro.system.errors import UserError

# Weights hardly compress. A higher ratio of unpacked to packed size indicates a
# decompression bomb.
_MAX_COMPRESSION_RATIO = 20


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file by name.

    Raises:
        UserError: The file is missing or damaged.
    """
    reject_pointer(path)
    try:
        # np.load(path) would leave a damaged file open.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if len(set(file.files)) != len(file.files):
                raise ValueError("duplicate array name")
            unpacked = sum(each.file_size for each in file.zip.infolist())
            if unpacked > _MAX_COMPRESSION_RATIO * path.stat().st_size:
                raise ValueError("compression ratio too high for weights")
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except DAMAGED_ARRAY:
        raise UserError(
            f"{path} is not an npz file of numbers, or it is damaged; download it again"
        ) from None
