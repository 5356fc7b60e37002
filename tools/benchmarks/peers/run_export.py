"""Loads an export without t2t_repro, as a server does, and answers requests.

    run_export.py VERSION_DIR

A request is {"signature": name, "inputs": {name: [text, ...]}}. The answer has the
flattened `outputs`, `load_seconds`, `first_request_seconds`, `memory_loaded` (bytes
after the first request), the version of `tensorflow`, and `loaded`: the packages of
`FORBIDDEN` that were imported. The script requires TensorFlow and the op libraries of
tensorflow_text. It blocks imports of Python packages that a server does not have.
"""

import importlib.util
import sys
import time
from pathlib import Path

from turns import memory, turns

# TensorFlow imports Keras itself.
FORBIDDEN = ("t2t_repro", "keras_nlp", "keras_hub", "tensorflow_text")


class Forbidden:
    """Import hook that fails for the packages of `FORBIDDEN`."""

    def find_spec(self, name, path=None, target=None):
        """Raises ImportError for a forbidden package."""
        if name.partition(".")[0] in FORBIDDEN:
            raise ImportError(f"imports of {name} are blocked")


def main():
    """Answers the requests of standard input."""
    origin = importlib.util.find_spec("tensorflow_text").origin
    sys.meta_path.insert(0, Forbidden())
    import numpy as np
    import tensorflow as tf

    for library in sorted(Path(origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
    before = memory("VmRSS")
    started = time.perf_counter()
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    constants = {"load_seconds": time.perf_counter() - started}
    constants["tensorflow"] = tf.__version__
    for request, answer in turns(before):
        signature = meta.signature_def[request["signature"]]
        feed = {
            signature.inputs[name].name: np.array([t.encode() for t in texts], object)
            for name, texts in request["inputs"].items()
        }
        fetch = {name: info.name for name, info in signature.outputs.items()}
        began = time.perf_counter()
        outputs = session.run(fetch, feed)
        constants.setdefault("first_request_seconds", time.perf_counter() - began)
        constants.setdefault("memory_loaded", memory("VmRSS") - before)
        answer["outputs"] = {name: as_list(value) for name, value in outputs.items()}
        answer["loaded"] = sorted(name for name in FORBIDDEN if name in sys.modules)
        answer.update(constants)


def as_list(value):
    """Returns a flat list of the array's values, with strings decoded."""
    if value.dtype == object:
        return [text.decode() for text in value.ravel()]
    return value.ravel().tolist()


if __name__ == "__main__":
    main()
