"""The messages of TensorFlow Serving's Predict method, as Python classes.

The package `tensorflow-serving-api` contains the same messages, but it requires a
TensorFlow at least as new as itself, so its installation would replace an older
TensorFlow. The classes here are built from messages.textproto when this module is
imported.

The protobuf wire format contains field numbers and no names of packages or messages.
The proto package of these messages is `t2t_repro.serving`, so both sets of classes can
be used in one process. Fields that are missing here are kept as unknown fields.

Source: model.proto, predict.proto, prediction_log.proto and prediction_service.proto
in `tensorflow_serving/apis/` of TensorFlow Serving 2.21.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
)

# Importing these generated modules adds their files, which messages.textproto depends
# on, to the descriptor pool.
from google.protobuf import wrappers_pb2 as _wrappers  # noqa: F401
from google.protobuf.message import Message  # type: ignore[import-untyped]
from tensorflow.core.framework import tensor_pb2 as _tensors  # noqa: F401

PREDICT = "/tensorflow.serving.PredictionService/Predict"
"""Full name of the gRPC method from a PredictRequest to a PredictResponse."""

ID_INPUTS = ("inputs", "targets")
"""Inputs of int32 ids; all other inputs are strings."""

_FILE = Path(__file__).with_name("messages.textproto")

_description = text_format.Parse(
    _FILE.read_text(encoding="utf-8"), descriptor_pb2.FileDescriptorProto()
)
_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_description.SerializeToString())
_classes = message_factory.GetMessageClassesForFiles([_description.name], _pool)

ModelSpec = _classes["t2t_repro.serving.ModelSpec"]
"""Fields: `name`, `signature_name`, and `version` (Int64Value) or `version_label`."""

PredictRequest = _classes["t2t_repro.serving.PredictRequest"]
"""Fields: `model_spec`, `inputs` (TensorProto by name) and `output_filter` (names)."""

PredictResponse = _classes["t2t_repro.serving.PredictResponse"]
"""Fields: `model_spec` and `outputs` (TensorProto by name)."""

PredictLog = _classes["t2t_repro.serving.PredictLog"]
"""Fields: `request` (PredictRequest) and `response` (PredictResponse)."""

PredictionLog = _classes["t2t_repro.serving.PredictionLog"]
"""Record of a warm-up file. Field: `predict_log` (PredictLog)."""


def predict_request(
    model_name: str, signature: str, inputs: Mapping[str, Sequence[object]]
) -> Message:
    """Returns a PredictRequest.

    Args:
        model_name: Name of the model on the server.
        signature: Name of the signature.
        inputs: Nested lists of strings (batch, ...), or of ids, by name.
    """
    request = PredictRequest()
    request.model_spec.name = model_name
    request.model_spec.signature_name = signature
    for name, values in inputs.items():
        dtype = tf.int32 if name in ID_INPUTS else tf.string
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values, dtype))
    return request
