"""Writes every named set of hyper-parameters as it is resolved, value by value.

    python -m tests.hparams.resolve_sets

writes `resolved_sets.yaml` beside this file, which belongs into the commit that changes
a default or a set: the review shows every set that is concerned.
"""

from pathlib import Path

import yaml

from t2t_repro import hparams

RESOLVED = Path(__file__).with_name("resolved_sets.yaml")


def resolved() -> str:
    """Returns a YAML mapping of every set's name to all its values, sets sorted."""
    sets = {name: hparams.load(name).to_dict() for name in hparams.names()}
    return yaml.safe_dump(sets, sort_keys=False)


if __name__ == "__main__":
    RESOLVED.write_text(resolved(), encoding="utf-8")
