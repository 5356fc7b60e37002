"""Loads an export as a server does and answers requests; needs no t2t_repro.

    run_export.py VERSION_DIR

Each request is {"signature": name, "inputs": {name: [text, ...]}}; the answer has its
`outputs`, all values of each in one row, and `load_seconds`, `first_request_seconds`,
`memory_loaded` (after that request, bytes), `tensorflow`, and `loaded`: the packages of
`FORBIDDEN` that were imported. It runs in any environment that has TensorFlow and
tensorflow_text, of whose Python code it uses nothing; it refuses to import what a
server does not have.
"""

import importlib.util
import sys
import time
from pathlib import Path

from turns import memory, turns

# TensorFlow imports Keras itself.
FORBIDDEN = ("t2t_repro", "keras_nlp", "keras_hub", "tensorflow_text")


class Forbidden:
    """Refuses imports, as if the packages were not installed."""

    def find_spec(self, name, path=None, target=None):
        """Runs before the folders of packages are searched."""
        if name.partition(".")[0] in FORBIDDEN:
            raise ImportError(f"{name} is not there")


def main():
    """Answers every request of standard input."""
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
    told = {"load_seconds": time.perf_counter() - started}
    told["tensorflow"] = tf.__version__
    for request, answer in turns(before):
        signature = meta.signature_def[request["signature"]]
        feed = {
            signature.inputs[name].name: np.array([t.encode() for t in texts], object)
            for name, texts in request["inputs"].items()
        }
        fetch = {name: info.name for name, info in signature.outputs.items()}
        began = time.perf_counter()
        found = session.run(fetch, feed)
        told.setdefault("first_request_seconds", time.perf_counter() - began)
        told.setdefault("memory_loaded", memory("VmRSS") - before)
        answer["outputs"] = {name: as_list(value) for name, value in found.items()}
        answer["loaded"] = sorted(name for name in FORBIDDEN if name in sys.modules)
        answer.update(told)


def as_list(value):
    """Returns the values of an array in one row, strings decoded."""
    if value.dtype == object:
        return [text.decode() for text in value.ravel()]
    return value.ravel().tolist()


if __name__ == "__main__":
    main()
