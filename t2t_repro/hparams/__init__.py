"""Hyper-parameters: `HParams` is a frozen, validated set.

`load("big,dropout=0.2")` loads a named set or a file, with overrides. `names()` lists
the named sets. `read(path)` reads a file written by `HParams.save`.
"""

from t2t_repro.hparams.fields import HParams
from t2t_repro.hparams.sets import load, load_given, names, read, split_spec

__all__ = ["HParams", "load", "load_given", "names", "read", "split_spec"]
