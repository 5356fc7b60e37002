"""The values that tensor2tensor's hyper-parameters may have without a translation.

known_hparams.yaml lists them.
"""

from typing import Any

from t2t_repro.interop.formats.text import own_tables

_TABLES = own_tables(__file__)
MODEL: dict[str, list[Any]] = _TABLES["model"]
TRAINING: dict[str, list[Any]] = _TABLES["training"]
# Values that turn an unknown hyper-parameter off.
_OFF: tuple[Any, ...] = (None, False, 0, "", "none", {}, [])


def is_harmless(key: str, value: object) -> bool:
    """Whether a hyper-parameter that is not in a table here can be ignored.

    An unknown one can where it is turned off.
    """
    prefixes = tuple(_TABLES["harmless_prefixes"])
    return key in _TABLES["harmless"] or key.startswith(prefixes) or value in _OFF
