"""Loads an export as a server does and answers requests; needs no t2t_repro.

    run_export.py VERSION_DIR < requests.json > answers.json

The requests are a list of {"signature": name, "inputs": {name: [text, ...]}}. It runs
in any environment that has TensorFlow and tensorflow_text, of whose Python code it
uses nothing; it refuses to import what a server does not have.
"""

import importlib.util
import json
import sys
from pathlib import Path

# TensorFlow imports Keras itself.
FORBIDDEN = ("t2t_repro", "keras_nlp", "keras_hub", "tensorflow_text")


class Forbidden:
    """Refuses imports, as if the packages were not installed."""

    def find_spec(self, name, path=None, target=None):
        """Is asked before the folders of packages are searched."""
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
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    answers = []
    for request in json.load(sys.stdin):
        signature = meta.signature_def[request["signature"]]
        feed = {
            signature.inputs[name].name: np.array([t.encode() for t in texts], object)
            for name, texts in request["inputs"].items()
        }
        fetch = {name: info.name for name, info in signature.outputs.items()}
        found = session.run(fetch, feed)
        answers.append({name: as_list(value) for name, value in found.items()})
    result = {
        "tensorflow": tf.__version__,
        "loaded": sorted(name for name in FORBIDDEN if name in sys.modules),
        "answers": answers,
    }
    json.dump(result, sys.stdout)


def as_list(value):
    """Returns the values of an array in one row, strings decoded."""
    if value.dtype == object:
        return [text.decode() for text in value.ravel()]
    return value.ravel().tolist()


if __name__ == "__main__":
    main()
