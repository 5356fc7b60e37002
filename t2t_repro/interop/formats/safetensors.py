"""The safetensors format (github.com/huggingface/safetensors).

Eight bytes of a length, that many of JSON with the type, the shape and the place of
each tensor, then the numbers. Nothing in it can run.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.system.errors import UserError

_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(tf.bfloat16.as_numpy_dtype),
}
_LONGEST_HEADER = 100_000_000  # The format's own bound, bytes.


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a file by name.

    UserError: it cannot be read, is damaged or cut off, or holds other numbers than
    floats of 16, 32 or 64 bits.
    """
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    length = int.from_bytes(contents[:8], "little")
    if len(contents) < 8 or not 2 <= length <= min(len(contents) - 8, _LONGEST_HEADER):
        raise UserError(f"{path}: no safetensors file, or cut off; get it again")
    try:
        header = json.loads(contents[8 : 8 + length])
        header.pop("__metadata__", None)
        data = memoryview(contents)[8 + length :]
        tensors = {name: _tensor(data, each) for name, each in header.items()}
        ends = sorted(tuple(each["data_offsets"]) for each in header.values())
        if [0, *(end for _, end in ends)] != [*(start for start, _ in ends), len(data)]:
            raise ValueError("tensors that overlap or leave gaps")
    except (
        *(ValueError, TypeError, KeyError, AttributeError),
        *(RecursionError, OverflowError),
    ) as error:
        raise UserError(f"{path} is damaged ({error}); get it again") from None
    return tensors


def _tensor(data: memoryview, entry: dict[str, Any]) -> np.ndarray:
    """Reads one tensor; raises what `read_safetensors` makes a UserError of."""
    start, end = entry["data_offsets"]
    shape = entry["shape"]
    if entry["dtype"] not in _DTYPES:
        raise ValueError(f"a tensor of type {entry['dtype']}: only floats are read")
    dtype = _DTYPES[entry["dtype"]]
    if not all(type(n) is int and n >= 0 for n in (start, end, *shape)):
        raise ValueError("a size that is no number")
    if end > len(data) or end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("a tensor whose place is not its size")
    return np.frombuffer(data[start:end], dtype).reshape(shape)
