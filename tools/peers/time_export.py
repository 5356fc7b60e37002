"""Loads an export through TensorFlow's graph loader and times it; needs no t2t_repro.

    time_export.py VERSION_DIR < batches.json

Standard input: a line with a list of batches of texts, then lines with the number of a
batch to translate. Prints a JSON object after loading, and one for every batch.
"""

import importlib.util
import json
import re
import sys
import time
from pathlib import Path


def main():
    """Loads, then times a batch for every line of standard input."""
    import numpy as np
    import tensorflow as tf

    origin = importlib.util.find_spec("tensorflow_text").origin
    for library in sorted(Path(origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
    batches = [
        np.array([text.encode() for text in batch], object)
        for batch in json.loads(sys.stdin.readline())
    ]
    before = memory("VmRSS")
    started = time.monotonic()
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    loaded = time.monotonic()
    signature = meta.signature_def["serving_default"]
    text = signature.inputs["text"].name
    translations = signature.outputs["translations"].name
    session.run(translations, {text: batches[0]})
    first = time.monotonic()
    tell(
        load_seconds=loaded - started,
        first_request_seconds=first - loaded,
        memory_before=before,
        memory_loaded=memory("VmRSS"),
    )
    for number in sys.stdin:
        started, used = time.monotonic(), time.process_time()
        found = session.run(translations, {text: batches[int(number)]})
        tell(
            seconds=time.monotonic() - started,
            processor_seconds=time.process_time() - used,
            lines=[line.decode() for line in found],
            memory=memory("VmHWM"),
        )


def memory(field):
    """Returns the process's memory now (VmRSS) or at most so far (VmHWM), bytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s*(\d+) kB", status)[1]) * 1024


def tell(**values):
    """Prints a line of JSON."""
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main()
