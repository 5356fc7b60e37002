"""PyTorch's `pytorch_model.bin`, read without running what is in it.

It is a zip: `data.pkl`, a pickle that describes tensors, and their numbers, a file for
each storage. A pickle is a program. Here it is read word by word, as
`pickletools.genops` takes it apart, and of its words only those that build names, sizes
and dictionaries mean anything; where it would call something, that has to be PyTorch's
constructor of a tensor, which is not called but noted.
"""

import math
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

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
_WAY_ROUND = (
    "convert it to model.safetensors (from_pretrained, then "
    "save_pretrained(FOLDER, safe_serialization=True)) and import that folder"
)


@dataclass(frozen=True)
class _Name:
    """What a pickle calls by its module and name."""

    name: str


@dataclass(frozen=True)
class _Storage:
    """A file of numbers."""

    kind: str
    key: str


@dataclass(frozen=True)
class _Tensor:
    """Part of a storage: `offset` and `strides` count its numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _RefusedError(Exception):
    """What a file of weights has no need of."""


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a state dictionary by name.

    UserError: it cannot be read, is damaged, is of the format before PyTorch 1.6, or
    would run or build anything but tensors.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        raise UserError(
            f"{path}: no zip, or cut off; if PyTorch before 1.6 wrote it, {_WAY_ROUND}"
        ) from None
    except _RefusedError as error:
        raise UserError(
            f"{path}: {error}, which no file of weights needs; nothing of it was run; "
            f"if you trust it, {_WAY_ROUND}"
        ) from None
    except (
        *(ValueError, TypeError, KeyError, IndexError, AttributeError),
        *(EOFError, OverflowError, RuntimeError),
    ) as error:
        raise UserError(f"{path} is damaged ({error}); get it again") from None


def _read(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    sizes = {each.filename: each.file_size for each in archive.infolist()}
    if len(sizes) != len(archive.infolist()):
        raise ValueError("a file comes twice in it")
    if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
        raise ValueError("it is compressed, as PyTorch never does")
    pickles = [name for name in sizes if name.rpartition("/")[2] == "data.pkl"]
    if len(pickles) != 1:
        raise ValueError("it has no data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    order = f"{folder}byteorder"
    if order in sizes and archive.read(order) != b"little":
        raise ValueError("its numbers are not little-endian")
    described = _described(archive.read(pickles[0]))
    if not isinstance(described, dict):
        raise ValueError("it holds no dictionary")
    tensors: dict[str, np.ndarray] = {}
    # Tied tables are the same numbers under a few names, and all in 16 bits or more.
    most = 2 * sum(sizes.values())
    for name, tensor in described.items():
        if not (isinstance(name, str) and isinstance(tensor, _Tensor)):
            raise ValueError("it holds other things than named tensors")
        numbers = np.frombuffer(
            archive.read(f"{folder}data/{tensor.storage.key}"),
            _STORAGES[tensor.storage.kind],
        )
        tensors[name] = _part(numbers, tensor)
        most -= tensors[name].size
        if most < 0:
            raise ValueError("the same numbers under many names")
    return tensors


def _part(numbers: np.ndarray, tensor: _Tensor) -> np.ndarray:
    """Copies a tensor out of its storage, after checking that it lies inside."""
    shape, strides = tensor.shape, tensor.strides
    steps = (*strides, tensor.offset, *shape)
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in steps):
        raise ValueError("a tensor with impossible sizes")
    last = tensor.offset + sum(
        (n - 1) * step for n, step in zip(shape, strides, strict=True)
    )
    count = math.prod(shape)
    # More numbers than the storage has would be the same ones again and again.
    if count > len(numbers) or (count and last >= len(numbers)):
        raise ValueError("a tensor larger than its file")
    size = numbers.itemsize
    view = np.lib.stride_tricks.as_strided(
        numbers[tensor.offset :], shape, [step * size for step in strides]
    )
    return view.copy()


def _described(contents: bytes) -> Any:
    """Follows a pickle's words and returns what it describes; calls nothing."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        at = len(stack) - stack[::-1].index(_MARK)  # ValueError: there is no mark.
        found = stack[at:]
        del stack[at - 1 :]
        return found

    def take(count: int) -> tuple[Any, ...]:
        if len(stack) < count:
            raise ValueError("a pickle that takes more than there is")
        found = tuple(stack[-count:])
        del stack[-count:]
        return found

    def put_items(items: list[Any]) -> None:
        target = stack[-1]
        if not isinstance(target, dict):
            raise _RefusedError("it fills in what is no dictionary")
        for name, value in zip(items[::2], items[1::2], strict=True):
            if name in target:
                raise ValueError("a name comes twice in it")
            target[name] = value

    def state() -> None:
        # An OrderedDict carries `_metadata`, versions of modules.
        target, _ = take(2)
        if not isinstance(target, dict):
            raise _RefusedError("it sets attributes")
        stack.append(target)

    constants = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
    literal = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINFLOAT"}
    literal |= {"BININT", "BININT1", "BININT2", "LONG1"}
    words: dict[str, Callable[[], None]] = {
        "MARK": lambda: stack.append(_MARK),
        "TUPLE": lambda: stack.append(tuple(since_mark())),
        "TUPLE1": lambda: stack.append(take(1)),
        "TUPLE2": lambda: stack.append(take(2)),
        "TUPLE3": lambda: stack.append(take(3)),
        "EMPTY_DICT": lambda: stack.append({}),
        "SETITEM": lambda: put_items(list(take(2))),
        "SETITEMS": lambda: put_items(since_mark()),
        "BINPERSID": lambda: stack.append(_storage(*take(1))),
        "REDUCE": lambda: stack.append(_noted(*take(2))),
        "BUILD": state,
        "PROTO": lambda: None,
        "FRAME": lambda: None,
    }
    for word, argument, _ in pickletools.genops(contents):
        name = word.name
        if name == "STOP":
            return take(1)[0]
        if name in constants:
            stack.append(constants[name])
        elif name in literal:
            stack.append(argument)
        elif name == "GLOBAL":
            stack.append(_name(str(argument)))
        elif name == "STACK_GLOBAL":
            stack.append(_name(" ".join(map(str, take(2)))))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument or 0])
        elif name in words:
            words[name]()
        else:
            raise _RefusedError(f"it has the pickle word {name}")
    raise ValueError("a pickle without an end")


def _name(name: str) -> _Name:
    if name not in _KNOWN:
        raise _RefusedError(f"it names {name.replace(' ', '.')!r:.80}")
    return _Name(name)


def _storage(identity: Any) -> _Storage:
    """Notes ("storage", its class, its file, its device, its size)."""
    word, kind, key, *_ = identity
    if word != "storage" or not isinstance(kind, _Name) or kind.name not in _STORAGES:
        raise _RefusedError("it refers to another thing than a storage")
    if not (isinstance(key, str) and key.isalnum()):
        raise ValueError("a storage without a file")
    return _Storage(kind.name, key)


def _noted(called: Any, arguments: Any) -> Any:
    """Notes what a call would make; of three functions alone."""
    name = called.name if isinstance(called, _Name) else None
    if name == _DICTIONARY and arguments == ():
        return {}
    if name == _PARAMETER and isinstance(arguments[0], _Tensor):
        return arguments[0]
    if name == _TENSOR and isinstance(arguments[0], _Storage):
        return _Tensor(*arguments[:4])
    raise _RefusedError("it calls what makes no tensor")
