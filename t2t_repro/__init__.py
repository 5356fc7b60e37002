"""The Transformer of "Attention Is All You Need" for current TensorFlow and Keras.

`load` loads a trained model. `Transformer`, `layers`, `losses` and `schedules` are for
use with Keras; `hparams` and `problems` define the training runs of
`python -m t2t_repro.train`. Each name is imported on first use, so importing the
package is fast.
"""

import importlib
import os
import platform
from typing import Any

if platform.machine() == "x86_64":
    # TensorFlow reads this variable when it is imported. By default TensorFlow uses
    # oneDNN only on processors with AVX512-VNNI, but oneDNN is also faster on AVX2
    # (docs/speed.md). A value that the user has set is not changed.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__version__ = "0.2.0"

# The module of each public name, and its attribute there (None: the module itself).
_EXPORTS = {
    "Transformer": ("models.transformer", "Transformer"),
    "hparams": ("hparams", None),
    "layers": ("layers", None),
    "load": ("translation.trained_model", "load"),
    "losses": ("training.losses", None),
    "problems": ("problems", None),
    "schedules": ("training.schedules", None),
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    """Imports a public name on first access."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 't2t_repro' has no attribute {name!r}")
    if name == "load":
        module = importlib.import_module("t2t_repro.system.quiet_import")
        module.use_tensorflow_backend()
        module.import_tensorflow_quietly()
    module_name, attribute = _EXPORTS[name]
    module = importlib.import_module(f"t2t_repro.{module_name}")
    return module if attribute is None else getattr(module, attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
