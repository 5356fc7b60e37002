"""Text files: those of other programs, UTF-8 or JSON, and YAML of this package."""

import json
from pathlib import Path
from typing import Any

import yaml

from t2t_repro.system.errors import UserError

_MOST_DIGITS = 15


def read_text(path: Path) -> str:
    """Returns the text of a file; UserError if it cannot be read or is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is no UTF-8; it is damaged") from None


def read_json(path: Path) -> dict[str, Any]:
    """Returns the one JSON object in a file; UserError if it is missing or damaged."""
    text = read_text(path)
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_int=_integer)
        if not isinstance(found, dict):
            raise ValueError("it must hold one object")
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); get it again") from None
    return found


def own_tables(module: str) -> dict[str, Any]:
    """Returns the tables in the YAML file that is named as a module of this package.

    `module` is its `__file__`.
    """
    text = Path(module).with_suffix(".yaml").read_text(encoding="utf-8")
    tables: dict[str, Any] = yaml.safe_load(text)
    return tables


def _integer(text: str) -> int:
    """Reads an integer that a float holds."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a dictionary of names that do not come twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found
