"""The messages of TensorFlow Serving's Predict method, as Python classes.

The package `tensorflow-serving-api` has them, too, but it requires a TensorFlow at
least as new as itself, so pip would replace the TensorFlow of an environment to install
it. The classes here are built from descriptors when this module is imported.

The protobuf wire format contains field numbers and no names of packages or messages.
The proto package of these messages is `t2t_repro.serving`, so both sets of classes can
be used in one process. Fields that are missing here are kept as unknown fields.

Source: model.proto, predict.proto, prediction_log.proto and prediction_service.proto
in `tensorflow_serving/apis/` of TensorFlow Serving 2.21.
"""

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
)

# The descriptor pool has to contain the two imported files: importing the generated
# modules adds them. Their classes are the types of `version` and of tensors.
from google.protobuf import wrappers_pb2 as _wrappers  # noqa: F401
from tensorflow.core.framework import tensor_pb2 as _tensors  # noqa: F401

PREDICT = "/tensorflow.serving.PredictionService/Predict"
"""The full name of the gRPC method, from a PredictRequest to a PredictResponse."""

_FILE = """
name: "t2t_repro/serving/messages.proto"
package: "t2t_repro.serving"
syntax: "proto3"
dependency: "google/protobuf/wrappers.proto"
dependency: "tensorflow/core/framework/tensor.proto"
message_type {
  name: "ModelSpec"
  oneof_decl { name: "version_choice" }
  field { name: "name" number: 1 type: TYPE_STRING }
  field { name: "version" number: 2 oneof_index: 0
          type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "signature_name" number: 3 type: TYPE_STRING }
  field { name: "version_label" number: 4 oneof_index: 0 type: TYPE_STRING }
}
message_type {
  name: "PredictRequest"
  field { name: "model_spec" number: 1
          type: TYPE_MESSAGE type_name: ".t2t_repro.serving.ModelSpec" }
  field { name: "inputs" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE
          type_name: ".t2t_repro.serving.PredictRequest.InputsEntry" }
  field { name: "output_filter" number: 3 label: LABEL_REPEATED type: TYPE_STRING }
  nested_type {
    name: "InputsEntry"
    options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2
            type: TYPE_MESSAGE type_name: ".tensorflow.TensorProto" }
  }
}
message_type {
  name: "PredictResponse"
  field { name: "outputs" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE
          type_name: ".t2t_repro.serving.PredictResponse.OutputsEntry" }
  field { name: "model_spec" number: 2
          type: TYPE_MESSAGE type_name: ".t2t_repro.serving.ModelSpec" }
  nested_type {
    name: "OutputsEntry"
    options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2
            type: TYPE_MESSAGE type_name: ".tensorflow.TensorProto" }
  }
}
message_type {
  name: "PredictLog"
  field { name: "request" number: 1
          type: TYPE_MESSAGE type_name: ".t2t_repro.serving.PredictRequest" }
  field { name: "response" number: 2
          type: TYPE_MESSAGE type_name: ".t2t_repro.serving.PredictResponse" }
}
message_type {
  name: "PredictionLog"
  oneof_decl { name: "log_type" }
  field { name: "predict_log" number: 6 oneof_index: 0
          type: TYPE_MESSAGE type_name: ".t2t_repro.serving.PredictLog" }
}
"""

_description = text_format.Parse(_FILE, descriptor_pb2.FileDescriptorProto())
_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_description.SerializeToString())
_classes = {
    message.name: message_factory.GetMessageClass(
        _pool.FindMessageTypeByName(f"{_description.package}.{message.name}")
    )
    for message in _description.message_type
}

ModelSpec = _classes["ModelSpec"]
"""`name`, `signature_name`, and `version` (Int64Value) or `version_label`."""

PredictRequest = _classes["PredictRequest"]
"""`model_spec`, `inputs` (TensorProto by name) and `output_filter` (names)."""

PredictResponse = _classes["PredictResponse"]
"""`model_spec` and `outputs` (TensorProto by name)."""

PredictLog = _classes["PredictLog"]
"""`request` (PredictRequest) and `response` (PredictResponse)."""

PredictionLog = _classes["PredictionLog"]
"""One record of a warm-up file: `predict_log` (PredictLog)."""
