"""Numbers in the settings of another program."""

import math

from t2t_repro.system.errors import UserError


def number(where: str, name: str, value: object) -> float:
    """Returns a finite number, also of text; UserError if it is none."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        if not math.isfinite(found := float(value)):
            raise ValueError
    except (ValueError, OverflowError):
        raise UserError(
            f"{where}: {name} must be a number, not {value!r:.40}"
        ) from None
    return found


def whole_number(where: str, name: str, value: object) -> int:
    """Returns a whole number, also of text; UserError if it is none."""
    found = number(where, name, value)
    if found != int(found):
        raise UserError(f"{where}: {name} must be a whole number, not {value!r:.40}")
    return int(found)
