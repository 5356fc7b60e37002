"""Readers of other programs' text and JSON files, and of this package's YAML tables."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from t2t_repro.system import atomic_file
from t2t_repro.system.errors import UserError

_MAX_DIGITS = 15  # All integers of 15 digits are exact in float64.


def reject_pointer(path: Path) -> None:
    """Raises UserError if a file is only a pointer to its contents in Git LFS.

    Pipes and devices are rejected, too, because files are read twice.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} is a pipe or device, but must be a regular file")
    with suppress(OSError), path.open("rb") as file:
        atomic_file.reject_pointer(file.read(64), path)


def read_text(path: Path) -> str:
    """Returns the text of a file.

    Raises:
        UserError: The file cannot be read or is not valid UTF-8.
    """
    reject_pointer(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not valid UTF-8; download it again") from None


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file.

    Raises:
        UserError: The file is missing or does not contain one valid JSON object.
    """
    text = read_text(path)
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_integer)
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        json.dumps(value, ensure_ascii=False).encode()  # No halves of surrogate pairs.
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: not JSON ({error}); correct it or download it again"
        ) from None
    return value


def own_tables(module: str) -> dict[str, Any]:
    """Returns the contents of the YAML file that belongs to a module.

    Args:
        module: `__file__` of the module; the YAML file is next to it and has the same
            name except for the suffix.
    """
    text = Path(module).with_suffix(".yaml").read_text(encoding="utf-8")
    tables: dict[str, Any] = yaml.safe_load(text)
    return tables


def _integer(text: str) -> int:
    """Parses an integer; raises ValueError if it is longer than `_MAX_DIGITS`."""
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"integer of {len(text):,} digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns a dictionary of the pairs; raises ValueError if a name is repeated."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("duplicate name")
    return values
