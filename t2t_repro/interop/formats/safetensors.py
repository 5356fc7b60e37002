"""Reader of safetensors files, a format without executable content."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors import SafetensorError, deserialize

from t2t_repro.interop.formats.text import reject_pointer
from t2t_repro.system.errors import UserError

# safetensors.numpy does not support bfloat16.
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": tf.bfloat16.as_numpy_dtype,
}


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a file by name.

    Raises:
        UserError: The file is missing, damaged or truncated, or contains a tensor that
            is not floating-point with 16, 32 or 64 bits.
    """
    reject_pointer(path)
    try:
        entries = deserialize(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except SafetensorError as error:
        raise UserError(
            f"{path} is not a safetensors file, or it is damaged ({error}); download "
            "it again"
        ) from None
    tensors = {}
    for name, entry in entries:
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise UserError(
                f"{path}: {name} has the dtype {entry['dtype']}, but only "
                f"{', '.join(_DTYPES)} can be imported"
            )
        numbers = np.frombuffer(entry["data"], dtype)
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors
