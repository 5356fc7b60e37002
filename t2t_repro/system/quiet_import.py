"""Import of TensorFlow without its log lines."""

import gc
import os
import sys
import tempfile

from t2t_repro.system import gpus


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow silently; prints one line if it cannot use a GPU.

    No setting suppresses the lines that TensorFlow logs during its import, so standard
    error is redirected to a file; a failed import prints the file. Later errors are
    logged only on machines with a GPU.
    """
    # Without a GPU, TensorFlow logs the missing GPU as an error.
    level = "2" if gpus.are_visible() else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    # The import creates many long-lived objects, which the garbage collector would
    # scan in vain.
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
            gc.enable()
    if reason := gpus.unused_reason():
        print(reason, file=sys.stderr, flush=True)
