"""Parsing of numbers in another program's settings."""

import math

from t2t_repro.system.errors import UserError


def number(where: str, name: str, value: object) -> float:
    """Converts a number or its text to a finite float.

    Args:
        where: File or flag of the setting, for messages.
        name: Name of the setting, for messages.
        value: Value of the setting.

    Raises:
        UserError: The value is not a finite number.
    """
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


def whole_number(where: str, name: str, value: object) -> int:
    """Parses an integer like `number`; raises UserError if there is a fraction."""
    result = number(where, name, value)
    if result != int(result):
        raise UserError(f"{where}: {name} must be a whole number, not {value!r:.40}")
    return int(result)
