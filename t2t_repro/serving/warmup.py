"""Warm-up requests of an export.

The first run of a graph takes seconds longer than later runs. Before TensorFlow Serving
uses a new version, it replays the requests in
``assets.extra/tf_serving_warmup_requests``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import Message  # type: ignore[import-untyped]

from t2t_repro.serving.messages import PredictionLog, PredictLog, predict_request

WARMUP_FILE = "tf_serving_warmup_requests"

# Texts of different lengths. Every vocabulary of every language contains digits.
_TEXTS = ("1", "1 2 3 4 5 6 7 8", " ".join(map(str, range(1, 25))))


def write_warmup_requests(
    folder: Path, model_name: str, signatures: Collection[str]
) -> None:
    """Writes the requests to a folder, as a TFRecord file of PredictionLog."""
    with tf.io.TFRecordWriter(str(folder / WARMUP_FILE)) as writer:
        for request in warmup_requests(model_name, signatures):
            log = PredictionLog(predict_log=PredictLog(request=request))
            writer.write(log.SerializeToString())


def warmup_requests(model_name: str, signatures: Collection[str]) -> Iterator[Message]:
    """Yields PredictRequests for the signatures, most of them for translation."""
    for texts in (*([text] for text in _TEXTS), _TEXTS):
        yield predict_request(model_name, "serving_default", {"text": texts})
    pairs = {"text": _TEXTS, "translation": _TEXTS}
    inputs: dict[str, Mapping[str, Sequence[object]]] = {
        "nbest": {"text": _TEXTS},
        "score": pairs,
        "terms": {"text": _TEXTS, "terms": [["1"]] * len(_TEXTS)},
        "attention": pairs,
    }
    for signature in (name for name in inputs if name in signatures):
        yield predict_request(model_name, signature, inputs[signature])
