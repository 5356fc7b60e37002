"""The Transformer of "Attention Is All You Need" on today's TensorFlow and Keras.

`load` brings a trained model back; `Transformer`, `layers`, `losses` and `schedules`
are for Keras; `hparams` and `problems` are what `python -m t2t_repro.train` trains.
Importing the package costs nothing: what is named is imported when it is used.
"""

import importlib
import os
import platform
from typing import Any

if platform.machine() == "x86_64":
    # TensorFlow reads it when it is imported. By itself it takes oneDNN's operations
    # on processors with AVX512-VNNI and later ones only; with AVX2 alone they are the
    # faster ones, too (docs/speed.md). Whoever has set it is left alone.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__version__ = "0.2.0"

# What is offered: a module, or a name in it.
_OFFERED = {
    "Transformer": ("models.transformer", "Transformer"),
    "hparams": ("hparams", None),
    "layers": ("layers", None),
    "load": ("translation.trained_model", "load"),
    "losses": ("training.losses", None),
    "problems": ("problems", None),
    "schedules": ("training.schedules", None),
}
__all__ = list(_OFFERED)


def __getattr__(name: str) -> Any:
    """Imports what is offered, when it is asked for."""
    if name not in _OFFERED:
        raise AttributeError(f"module 't2t_repro' has no attribute {name!r}")
    module, attribute = _OFFERED[name]
    found = importlib.import_module(f"t2t_repro.{module}")
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
