"""`PredictionService` and `ModelService` over gRPC, with the real messages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import any_pb2
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving_harness.graph import Arrays
from serving_harness.service import DEFAULT_SIGNATURE, Service
from serving_harness.status import StatusError

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers Predict and GetModelMetadata.

    Args:
        service: the model.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Answers one request."""
        try:
            inputs = {
                name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()
            }
            _check_model(self._service, request.model_spec)
            signature = request.model_spec.signature_name
            outputs = self._service.predict(signature, inputs)
        except StatusError as error:
            context.abort(_CODES[error.code], error.message)
        response = predict_pb2.PredictResponse()
        response.model_spec.name = self._service.name
        response.model_spec.version.value = self._service.model.version
        response.model_spec.signature_name = signature or DEFAULT_SIGNATURE
        _fill(response.outputs, outputs)
        return response

    def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Tells the signatures."""
        try:
            _check_model(self._service, request.model_spec)
        except StatusError as error:
            context.abort(_CODES[error.code], error.message)
        found = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in self._service.model.signatures.items():
            definition = found.signature_def[name]
            for key, info in signature.inputs.items():
                definition.inputs[key].CopyFrom(info)
            for key, info in signature.outputs.items():
                definition.outputs[key].CopyFrom(info)
        packed = any_pb2.Any()
        packed.Pack(found)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = self._service.name
        response.metadata["signature_def"].CopyFrom(packed)
        return response


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """Answers GetModelStatus.

    Args:
        service: the model.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def GetModelStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Says that the version is there."""
        try:
            _check_model(self._service, request.model_spec)
        except StatusError as error:
            context.abort(_CODES[error.code], error.message)
        status = get_model_status_pb2.ModelVersionStatus(
            version=self._service.model.version,
            state=get_model_status_pb2.ModelVersionStatus.AVAILABLE,
        )
        return get_model_status_pb2.GetModelStatusResponse(
            model_version_status=[status]
        )


def start(service: Service, port: int = 0, threads: int = 64) -> tuple[Any, int]:
    """Starts a server on loopback.

    Args:
        service: the model.
        port: 0 takes a free one.
        threads: requests under way at the same time.

    Returns:
        The server, to be stopped, and its port.
    """
    # As the stock server: messages of any size.
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.server(ThreadPoolExecutor(threads), options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(service), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(
        ModelService(service), server
    )
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def _check_model(service: Service, spec: Any) -> None:
    """Refuses other models and versions."""
    version = spec.version.value if spec.HasField("version") else None
    service.check_model(spec.name, version)


def _fill(into: Any, outputs: Arrays) -> None:
    """Writes arrays as the server does: value by value, not as raw content."""
    for name, array in outputs.items():
        tensor = tensor_pb2.TensorProto()
        tensor.dtype = tf.as_dtype(array.dtype).as_datatype_enum
        for size in array.shape:
            tensor.tensor_shape.dim.add(size=size)
        values = array.ravel().tolist()
        if array.dtype == np.object_:
            tensor.string_val.extend(values)
        elif array.dtype == np.float32:
            tensor.float_val.extend(values)
        else:
            tensor.int_val.extend(values)
        into[name].CopyFrom(tensor)
