"""tensor2tensor's named hyper-parameter sets, which sets.yaml lists.

Only hyper-parameters that decide what a translation model computes or how it is trained
are listed.
"""

from typing import Any

from t2t_repro.hparams.settings import did_you_mean
from t2t_repro.interop.formats.text import own_tables
from t2t_repro.system.errors import UserError

_SETS: dict[str, dict[str, Any]] = own_tables(__file__)["sets"]
_PREFIX = "transformer_"


def names() -> list[str]:
    """Returns the names of all sets, as tensor2tensor's `--hparams_set` takes them."""
    return [_PREFIX + name for name in _SETS]


def load(name: str) -> dict[str, Any]:
    """Returns a set's values, its parents' included; UserError if it is unknown."""
    if name not in names():
        raise UserError(
            f"--t2t_hparams_set {name}: no such set is known here"
            f"{did_you_mean(name, names())}; the run's hparams.json, given with "
            "--hparams_json, says everything"
        )
    return _values(name.removeprefix(_PREFIX))


def _values(name: str) -> dict[str, Any]:
    values = dict(_SETS[name])
    parent = values.pop("parent", None)
    return values if parent is None else _values(parent) | values


BASE = _values("base_v1")
"""The first set, whose values stand for missing ones."""
