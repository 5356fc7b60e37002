"""Warm-up requests of an export.

The first run of a graph takes seconds longer than later runs. Before TensorFlow Serving
uses a new version, it replays the requests in
``assets.extra/tf_serving_warmup_requests``.
"""

from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import Message  # type: ignore[import-untyped]

from t2t_repro.serving.messages import PredictionLog, PredictLog, predict_request

WARMUP_FILE = "tf_serving_warmup_requests"

# Texts of different lengths. Every vocabulary of every language contains digits.
_TEXTS = ("1", "1 2 3 4 5 6 7 8", " ".join(map(str, range(1, 25))))


def write_warmup_requests(folder: Path, model_name: str) -> None:
    """Writes the requests to a folder, as a TFRecord file of PredictionLog."""
    with tf.io.TFRecordWriter(str(folder / WARMUP_FILE)) as writer:
        for request in warmup_requests(model_name):
            log = PredictionLog(predict_log=PredictLog(request=request))
            writer.write(log.SerializeToString())


def warmup_requests(model_name: str) -> Iterator[Message]:
    """Yields PredictRequests for each signature, most of them for translation."""
    for texts in (*([text] for text in _TEXTS), _TEXTS):
        yield predict_request(model_name, "serving_default", {"text": texts})
    yield predict_request(model_name, "nbest", {"text": _TEXTS})
    pairs = {"text": _TEXTS, "translation": _TEXTS}
    yield predict_request(model_name, "score", pairs)
    yield predict_request(model_name, "attention", pairs)
