"""Hyper-parameters: `HParams` is a frozen, checked set of them.

`load("big,dropout=0.2")` makes one from a named set or a file, with overrides;
`names()` lists the sets; `read(path)` reads what `HParams.save` wrote.
"""

from t2t_repro.hparams.fields import HParams
from t2t_repro.hparams.sets import load, names, read

__all__ = ["HParams", "load", "names", "read"]
