"""Writes all values of all named hyper-parameter sets to `resolved_sets.yaml`.

    python -m tests.hparams.resolve_sets

Commit the file together with the change of a default or a set, so that the diff shows
every affected set.
"""

from pathlib import Path

import yaml

from t2t_repro import hparams

RESOLVED = Path(__file__).with_name("resolved_sets.yaml")


def resolved() -> str:
    """Returns a YAML mapping of the sorted names of sets to all of their values."""
    sets = {name: hparams.load(name).to_dict() for name in hparams.names()}
    return yaml.safe_dump(sets, sort_keys=False)


if __name__ == "__main__":
    RESOLVED.write_text(resolved(), encoding="utf-8")
