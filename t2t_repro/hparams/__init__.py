"""Hyper-parameters: a frozen, checked set of values and the named sets of them."""

from t2t_repro.hparams.fields import HParams
from t2t_repro.hparams.sets import load, names, read

__all__ = ["HParams", "load", "names", "read"]
