"""Names and thresholds of the cleaning rules, and the files that change them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from t2t_repro.cleaning.lengths import LENGTH_RULES
from t2t_repro.cleaning.pair_rules import PAIR_RULES
from t2t_repro.cleaning.repairs import REPAIRS
from t2t_repro.hparams.settings import suggest_similar
from t2t_repro.system.errors import UserError

Thresholds = Mapping[str, float]
"""Thresholds of the active rules, by name; 0 for a rule without a threshold."""

RULES: Mapping[str, float] = {
    **dict.fromkeys(REPAIRS, 0),
    **{name: default for name, (_, default) in PAIR_RULES.items()},
    "language": 50,
    "duplicate": 0,
    **{name: default for name, (_, default) in LENGTH_RULES.items()},
    "misaligned": 1000,
}
"""Default thresholds of all rules, in the order in which they are applied."""

CODES = {name: code for code, name in enumerate(RULES, 1)}
"""Number of each rule in the array of verdicts. A pair that is kept has 0."""

_HIGHEST = {"letters": 1, "copy": 1}  # These thresholds are fractions.


def load_rules(path: str | None) -> dict[str, float]:
    """Returns the thresholds of the active rules.

    Args:
        path: YAML file that maps names of rules to `false` (off), `true` (default
            threshold) or a threshold; None for the defaults.

    Raises:
        UserError: The file cannot be read, is not such a mapping, or contains an
            unknown rule or an invalid threshold.
    """
    settings = _read_mapping(path) if path else {}
    for name, value in settings.items():
        if name not in RULES:
            hint = suggest_similar(str(name), RULES)
            hint = hint or f"; choose from {', '.join(RULES)}"
            raise UserError(f"{path}: unknown rule {name!r}{hint}")
        highest = _HIGHEST.get(name, 1_000_000 if RULES[name] else 0)
        is_number = isinstance(value, int | float) and 0 < value <= highest
        if not (isinstance(value, bool) or is_number):
            number = f", or a number above 0 and at most {highest:,}" if highest else ""
            raise UserError(
                f"{path}: {name} must be true or false{number}, not {value!r}"
            )
    values = {name: settings.get(name, True) for name in RULES}
    return {
        name: RULES[name] if value is True else value
        for name, value in values.items()
        if value is not False
    }


def _read_mapping(path: str) -> dict[str, float]:
    """Returns the contents of a YAML file, whose values may have other types."""
    try:
        settings = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise UserError(f"{path} must have lines such as 'copy: false' (YAML)")
    return settings
