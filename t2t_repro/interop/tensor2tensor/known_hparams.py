"""Supported values of hyper-parameters that are not translated.

known_hparams.yaml contains the tables.
"""

from typing import Any

from t2t_repro.interop.formats.text import own_tables

_TABLES = own_tables(__file__)
MODEL: dict[str, list[Any]] = _TABLES["model"]
TRAINING: dict[str, list[Any]] = _TABLES["training"]
# Values that disable an unknown hyper-parameter.
_OFF: tuple[Any, ...] = (None, False, 0, "", "none", {}, [])


def is_harmless(key: str, value: object) -> bool:
    """Returns whether a hyper-parameter outside the tables can be ignored.

    Unknown hyper-parameters can be ignored if their value disables them.
    """
    prefixes = tuple(_TABLES["harmless_prefixes"])
    return key in _TABLES["harmless"] or key.startswith(prefixes) or value in _OFF
