"""Importing TensorFlow without the lines that it logs."""

import gc
import os
import sys
import tempfile

from t2t_repro.system import gpus


def import_tensorflow_quietly() -> None:
    """Imports TensorFlow, and logs one line if a GPU is unused.

    Its lines precede any setting, so descriptor 2 is turned aside; a failed import
    shows them. Where there is a GPU, later errors are shown.
    """
    # Without a GPU TensorFlow calls it an error that there is none.
    level = "2" if gpus.are_there() else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    kept = os.dup(2)
    # Objects made by the import stay: looking for garbage among them only takes time.
    gc.disable()
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except BaseException:
            aside.seek(0)
            os.write(kept, aside.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            gc.freeze()
            gc.enable()
    if reason := gpus.why_unused():
        print(reason, file=sys.stderr, flush=True)
