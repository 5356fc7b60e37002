"""Requests that a server answers before it lets a new version answer others.

The first run of a graph takes seconds more than the next. TensorFlow Serving replays
what it finds in ``assets.extra/tf_serving_warmup_requests``.
"""

from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import Message  # type: ignore[import-untyped]

from t2t_repro.serving.messages import PredictionLog, PredictLog, PredictRequest

WARMUP_FILE = "tf_serving_warmup_requests"

# Of several lengths. Digits are in every vocabulary, and in every language.
_TEXTS = ("1", "1 2 3 4 5 6 7 8", " ".join(map(str, range(1, 25))))


def write_warmup_requests(folder: Path, model_name: str) -> None:
    """Writes the requests, a TFRecord file of PredictionLog, to ``assets.extra``."""
    with tf.io.TFRecordWriter(str(folder / WARMUP_FILE)) as writer:
        for request in warmup_requests(model_name):
            log = PredictionLog(predict_log=PredictLog(request=request))
            writer.write(log.SerializeToString())


def warmup_requests(model_name: str) -> Iterator[Message]:
    """Yields a PredictRequest per signature, and more for the most frequent one."""
    for texts in (*([text] for text in _TEXTS), list(_TEXTS)):
        yield _request(model_name, "serving_default", text=texts)
    yield _request(model_name, "nbest", text=list(_TEXTS))
    pairs = {"text": list(_TEXTS), "translation": list(_TEXTS)}
    yield _request(model_name, "score", **pairs)
    yield _request(model_name, "attention", **pairs)


def _request(model_name: str, signature: str, **inputs: list[str]) -> Message:
    """Makes one PredictRequest, its inputs string (batch,)."""
    request = PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, texts in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    return request
