"""Parsing of numbers in another program's settings."""

import math
from collections.abc import Mapping

from t2t_repro.system.errors import UserError


def number(where: str, settings: Mapping[str, object], name: str) -> float:
    """Returns a setting as a float.

    Args:
        where: File or flag of the settings, for messages.
        settings: Settings by name; a number may also be given as text.
        name: Name of the setting.

    Raises:
        UserError: The setting is missing or is not a finite number.
    """
    value = settings.get(name)
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        if not math.isfinite(result := float(value)):
            raise ValueError
    except (ValueError, OverflowError):
        raise UserError(
            f"{where}: {name} must be a number, not {value!r:.40}"
        ) from None
    return result


def whole_number(where: str, settings: Mapping[str, object], name: str) -> int:
    """Returns an integer like `number`; raises UserError if there is a fraction."""
    result = number(where, settings, name)
    if result != int(result):
        raise UserError(
            f"{where}: {name} must be a whole number, not {settings[name]!r:.40}"
        )
    return int(result)
