"""Import of TensorFlow without its log lines, and as the backend of Keras."""

import gc
import importlib.util
import os
import sys
import tempfile

from t2t_repro.system import gpus
from t2t_repro.system.errors import UserError

VERBOSE = "T2T_REPRO_VERBOSE"
"""Environment variable; any text shows TensorFlow's log and all tracebacks."""


def use_tensorflow_backend() -> None:
    """Selects TensorFlow as the backend of Keras, which trained models need.

    The variable takes precedence over ~/.keras/keras.json. Raises UserError if Keras
    has been imported with another backend, which cannot be changed afterwards.
    """
    keras = sys.modules.get("keras")
    if keras is None:
        os.environ["KERAS_BACKEND"] = "tensorflow"
    elif (backend := keras.config.backend()) != "tensorflow":
        raise UserError(
            f"Keras was imported with the backend {backend}, but trained models need "
            "TensorFlow: set KERAS_BACKEND=tensorflow before importing Keras"
        )
    if importlib.util.find_spec("tf_keras") is None:
        # TensorFlow would fail to import tf_keras, in an endless recursion.
        os.environ.pop("TF_USE_LEGACY_KERAS", None)


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow silently; prints one line if it cannot use a GPU.

    No setting suppresses the lines that TensorFlow logs during its import, so standard
    error is redirected to a file; a failed import prints the file. Later errors are
    logged only on machines with a GPU. With `VERBOSE` the function does nothing.
    """
    if os.environ.get(VERBOSE):
        return
    # Without a GPU, TensorFlow logs the missing GPU as an error.
    level = "2" if gpus.are_visible() else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    # The import creates many long-lived objects, which the garbage collector would
    # scan in vain.
    is_collecting = gc.isenabled()
    gc.disable()
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except BaseException:
            log.seek(0)
            os.write(stderr, log.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            gc.freeze()
            if is_collecting:
                gc.enable()
    if reason := gpus.unused_reason():
        print(reason, file=sys.stderr, flush=True)
