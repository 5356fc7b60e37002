"""Writes the values of all named hyper-parameter sets to `resolved_sets.yaml`.

    python -m tests.hparams.resolve_sets

The file contains all values of `base`, and the values of other sets that differ from
it. Commit it together with the change of a default or a set, so that the diff shows
every affected set.
"""

from pathlib import Path

import yaml

from t2t_repro import hparams

RESOLVED = Path(__file__).with_name("resolved_sets.yaml")


def resolved() -> str:
    """Returns a YAML mapping of the sorted names of sets to their values."""
    base = hparams.load("base").to_dict()
    sets = {"base": base}
    for name in hparams.names():
        if name != "base":
            values = hparams.load(name).to_dict().items()
            sets[name] = {key: value for key, value in values if value != base[key]}
    return yaml.safe_dump(sets, sort_keys=False)


if __name__ == "__main__":
    RESOLVED.write_text(resolved(), encoding="utf-8")
