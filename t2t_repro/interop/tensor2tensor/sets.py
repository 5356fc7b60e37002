"""Named hyper-parameter sets of tensor2tensor.

sets.yaml contains the hyper-parameters that affect translation models or their
training.
"""

from typing import Any

from t2t_repro.hparams.settings import suggest_similar
from t2t_repro.interop.formats.text import own_tables
from t2t_repro.system.errors import UserError

_SETS: dict[str, dict[str, Any]] = own_tables(__file__)["sets"]
_PREFIX = "transformer_"


def names() -> list[str]:
    """Returns the names of all sets, as in tensor2tensor's `--hparams_set`."""
    return [_PREFIX + name for name in _SETS]


def load(name: str) -> dict[str, Any]:
    """Returns the values of a set, including inherited ones.

    Raises:
        UserError: The set is unknown.
    """
    if name not in names():
        raise UserError(
            f"--t2t_hparams_set {name}: unknown set{suggest_similar(name, names())}; "
            "otherwise give the run's hparams.json with --hparams_json"
        )
    return _values(name.removeprefix(_PREFIX))


def _values(name: str) -> dict[str, Any]:
    values = dict(_SETS[name])
    parent = values.pop("parent", None)
    return values if parent is None else _values(parent) | values


BASE = _values("base_v1")
"""Values of the oldest set, the defaults of missing hyper-parameters."""
