"""Warm-up requests of an export.

The first run of a graph takes seconds longer than later runs. Before TensorFlow Serving
uses a new version, it replays the requests in
``assets.extra/tf_serving_warmup_requests``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import Message  # type: ignore[import-untyped]

from t2t_repro.serving.messages import PredictionLog, PredictLog, predict_request
from t2t_repro.tokenizers.plain_tokenizer import pad

WARMUP_FILE = "tf_serving_warmup_requests"

# Texts of different lengths. Every vocabulary of every language contains digits.
_TEXTS = ("1", "1 2 3 4 5 6 7 8", " ".join(map(str, range(1, 25))))
# Every vocabulary contains the id 2; 1 is EOS.
_IDS = ([2, 1], [2] * 8 + [1], [2] * 24 + [1])


def write_warmup_requests(
    folder: Path, model_name: str, signatures: Collection[str], takes_ids: bool = False
) -> None:
    """Writes the requests to a folder, as a TFRecord file of PredictionLog."""
    with tf.io.TFRecordWriter(str(folder / WARMUP_FILE)) as writer:
        for request in warmup_requests(model_name, signatures, takes_ids):
            log = PredictionLog(predict_log=PredictLog(request=request))
            writer.write(log.SerializeToString())


def warmup_requests(
    model_name: str, signatures: Collection[str], takes_ids: bool = False
) -> Iterator[Message]:
    """Yields PredictRequests for the signatures, most of them for translation."""
    name, other = ("inputs", "targets") if takes_ids else ("text", "translation")
    rows: list[Any] = [*(pad(_IDS) if takes_ids else _TEXTS)]
    for batch in (*([row] for row in rows), rows):
        yield predict_request(model_name, "serving_default", {name: batch})
    pairs = {name: rows, other: rows}
    inputs: dict[str, Mapping[str, Sequence[object]]] = {
        "nbest": {name: rows},
        "split_sentences": {name: rows},
        "score": pairs,
        "terms": {name: rows, "terms": [["1"]] * len(rows)},
        "attention": pairs,
    }
    for signature in (name for name in inputs if name in signatures):
        yield predict_request(model_name, signature, inputs[signature])
