"""Reader of PyTorch's `pytorch_model.bin` that executes no code from the file.

The file is a zip archive of `data.pkl`, a pickle that describes the tensors, and one
file of numbers per storage. Unpickling can execute arbitrary code. This reader
interprets the opcodes that `pickletools.genops` returns and accepts only those that
build strings, numbers, tuples, dictionaries and tensors. Instead of calling PyTorch's
tensor constructors, it records their arguments.
"""

import math
import pickletools
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.interop.formats.text import reject_pointer
from t2t_repro.system.damage import DAMAGED_ZIP
from t2t_repro.system.errors import UserError

_STORAGES = {
    "torch DoubleStorage": np.dtype("<f8"),
    "torch FloatStorage": np.dtype("<f4"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch BFloat16Storage": np.dtype(tf.bfloat16.as_numpy_dtype),
    "torch LongStorage": np.dtype("<i8"),
    "torch IntStorage": np.dtype("<i4"),
}
_TENSOR = "torch._utils _rebuild_tensor_v2"
_PARAMETER = "torch._utils _rebuild_parameter"
_DICTIONARY = "collections OrderedDict"
_KNOWN = {*_STORAGES, _TENSOR, _PARAMETER, _DICTIONARY}
_MARK = object()
_CONVERSION = (
    "convert it to model.safetensors (from_pretrained, then "
    "save_pretrained(FOLDER, safe_serialization=True)) and import that folder"
)


@dataclass(frozen=True)
class _Storage:
    """File of numbers: its PyTorch storage class and its name in the archive."""

    kind: str
    key: str


@dataclass(frozen=True)
class _Tensor:
    """View of a storage; `offset` and `strides` are in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _RejectedError(Exception):
    """Raised for pickle content that weight files do not need."""


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a state dictionary by name.

    Raises:
        UserError: The file cannot be read, is damaged, has the format used before
            PyTorch 1.6, or contains anything other than tensors.
    """
    reject_pointer(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        raise UserError(
            f"{path} is not a zip archive, or it is damaged; if it was written by "
            f"PyTorch before 1.6, {_CONVERSION}"
        ) from None
    except _RejectedError as error:
        raise UserError(
            f"{path}: {error}, which weight files do not need; none of its code was "
            f"executed; if you trust the file, {_CONVERSION}"
        ) from None
    except (
        *(ValueError, TypeError, KeyError, IndexError, AttributeError),
        *(OverflowError, RuntimeError, *DAMAGED_ZIP),
    ) as error:
        raise UserError(f"{path} is damaged ({error}); download it again") from None


def _read(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    sizes = {each.filename: each.file_size for each in archive.infolist()}
    if len(sizes) != len(archive.infolist()):
        raise ValueError("duplicate file in the archive")
    if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
        raise ValueError("the archive is compressed, unlike PyTorch's files")
    pickles = [name for name in sizes if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise ValueError("expected one data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    order = f"{folder}byteorder"
    if order in sizes and archive.read(order) != b"little":
        raise ValueError("the numbers are not little-endian")
    entries = _interpret(archive.read(pickles[0]))
    if not isinstance(entries, dict):
        raise ValueError("the pickle does not contain a dictionary")
    tensors: dict[str, np.ndarray] = {}
    # Bounds the memory for tensors that share a storage. Tied tables have up to four
    # names, and elements have at least 16 bits.
    budget = 2 * sum(sizes.values())
    for name, tensor in entries.items():
        if not (isinstance(name, str) and isinstance(tensor, _Tensor)):
            raise ValueError("the dictionary contains an entry other than a tensor")
        numbers = np.frombuffer(
            archive.read(f"{folder}data/{tensor.storage.key}"),
            _STORAGES[tensor.storage.kind],
        )
        tensors[name] = _view(numbers, tensor)
        budget -= tensors[name].size
        if budget < 0:
            raise ValueError("too many tensors share a storage")
    return tensors


def _view(numbers: np.ndarray, tensor: _Tensor) -> np.ndarray:
    """Returns a copy of a tensor after checking that its storage contains it."""
    shape, strides = tensor.shape, tensor.strides
    steps = (*strides, tensor.offset, *shape)
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in steps):
        raise ValueError("invalid tensor shape or strides")
    last = tensor.offset + sum(
        (n - 1) * step for n, step in zip(shape, strides, strict=True)
    )
    count = math.prod(shape)
    # Without this check, zero strides could repeat elements to any size.
    if count > len(numbers) or (count and last >= len(numbers)):
        raise ValueError("tensor larger than its storage")
    size = numbers.itemsize
    view = np.lib.stride_tricks.as_strided(
        numbers[tensor.offset :], shape, [step * size for step in strides]
    )
    return view.copy()


class _Stack:
    """Stack of a pickle's virtual machine.

    Attributes:
        items: Objects and marks on the stack.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, item: Any) -> None:
        """Adds an object."""
        self.items.append(item)

    def pop_to_mark(self) -> list[Any]:
        """Removes and returns the objects above the last mark, and the mark."""
        # `index` raises ValueError if the stack contains no mark.
        start = len(self.items) - self.items[::-1].index(_MARK)
        above = self.items[start:]
        del self.items[start - 1 :]
        return above

    def pop(self, count: int) -> tuple[Any, ...]:
        """Removes and returns the last objects."""
        if len(self.items) < count:
            raise ValueError("pickle stack underflow")
        last = tuple(self.items[-count:])
        del self.items[-count:]
        return last

    def set_items(self, items: Sequence[Any]) -> None:
        """Adds names and values, alternating, to the dictionary at the end."""
        target = self.items[-1]
        if not isinstance(target, dict):
            raise _RejectedError("the pickle sets items of an object")
        for name, value in zip(items[::2], items[1::2], strict=True):
            if name in target:
                raise ValueError("duplicate name in the pickle")
            target[name] = value

    def ignore_attributes(self) -> None:
        """Removes the attributes of a dictionary.

        state_dict() returns an OrderedDict with the attribute `_metadata`.
        """
        target, _ = self.pop(2)
        if not isinstance(target, dict):
            raise _RejectedError("the pickle sets attributes of an object")
        self.push(target)


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINFLOAT"}
_LITERALS |= {"BININT", "BININT1", "BININT2", "LONG1"}
_ACTIONS: dict[str, Callable[[_Stack], None]] = {
    "MARK": lambda stack: stack.push(_MARK),
    "TUPLE": lambda stack: stack.push(tuple(stack.pop_to_mark())),
    "TUPLE1": lambda stack: stack.push(stack.pop(1)),
    "TUPLE2": lambda stack: stack.push(stack.pop(2)),
    "TUPLE3": lambda stack: stack.push(stack.pop(3)),
    "EMPTY_DICT": lambda stack: stack.push({}),
    "SETITEM": lambda stack: stack.set_items(stack.pop(2)),
    "SETITEMS": lambda stack: stack.set_items(stack.pop_to_mark()),
    "STACK_GLOBAL": lambda stack: stack.push(
        _check_known(" ".join(map(str, stack.pop(2))))
    ),
    "BINPERSID": lambda stack: stack.push(_storage(*stack.pop(1))),
    "REDUCE": lambda stack: stack.push(_call(*stack.pop(2))),
    "BUILD": _Stack.ignore_attributes,
    "PROTO": lambda stack: None,
    "FRAME": lambda stack: None,
}


def _interpret(contents: bytes) -> Any:
    """Returns the object that a pickle describes, without calling any function."""
    stack, memo = _Stack(), dict[int, Any]()
    for opcode, argument, _ in pickletools.genops(contents):
        name = opcode.name
        if name == "STOP":
            return stack.pop(1)[0]
        if name in _CONSTANTS:
            stack.push(_CONSTANTS[name])
        elif name in _LITERALS:
            stack.push(argument)
        elif name == "GLOBAL":
            stack.push(_check_known(str(argument)))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack.items[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.push(memo[argument or 0])
        elif name in _ACTIONS:
            _ACTIONS[name](stack)
        else:
            raise _RejectedError(f"the pickle contains the opcode {name}")
    raise ValueError("pickle without STOP")


def _check_known(name: str) -> str:
    """Returns the module and name of a Python object, separated by a space.

    The object itself is never looked up.
    """
    if name not in _KNOWN:
        raise _RejectedError(f"the pickle refers to {name.replace(' ', '.')!r:.80}")
    return name


def _storage(identity: Any) -> _Storage:
    """Returns the storage of a persistent id ("storage", class, key, device, size)."""
    tag, kind, key, *_ = identity
    if tag != "storage" or kind not in _STORAGES:
        raise _RejectedError("a persistent id does not refer to a storage")
    if not (isinstance(key, str) and key.isalnum()):
        raise ValueError("invalid name of a storage file")
    return _Storage(kind, key)


def _call(function: Any, arguments: Any) -> Any:
    """Evaluates a call of one of three permitted constructors without executing it."""
    if function == _DICTIONARY and arguments == ():
        return {}
    if function == _PARAMETER and isinstance(arguments[0], _Tensor):
        return arguments[0]
    if function == _TENSOR and isinstance(arguments[0], _Storage):
        return _Tensor(*arguments[:4])
    raise _RejectedError("the pickle calls a function other than tensor constructors")
