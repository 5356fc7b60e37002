"""gRPC interface of the test server: `PredictionService`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from t2t_repro.serving.server.service import DEFAULT_SIGNATURE, Arrays, Service
from t2t_repro.serving.server.status import StatusError

MOST_REQUESTS = 64
"""Maximum number of concurrent requests."""

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Implementation of `PredictionService` with the method Predict."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Answers a `PredictRequest` with a `PredictResponse`."""
        try:
            inputs = {
                name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()
            }
            spec = request.model_spec
            version = spec.version.value if spec.HasField("version") else None
            self._service.check_model(spec.name, version)
            signature = spec.signature_name
            outputs = self._service.predict(signature, inputs)
        except StatusError as error:
            context.abort(_CODES[error.code], error.message)
        response = predict_pb2.PredictResponse()
        response.model_spec.name = self._service.name
        response.model_spec.version.value = self._service.version
        response.model_spec.signature_name = signature or DEFAULT_SIGNATURE
        _fill(response.outputs, outputs)
        return response


def start(service: Service, port: int) -> tuple[Any, int]:
    """Starts a server on localhost; returns the server and its port.

    Port 0 selects a free port.
    """
    # TensorFlow Serving does not limit the message size either.
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.server(ThreadPoolExecutor(MOST_REQUESTS), options=options)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(service), server
    )
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def _fill(into: Any, outputs: Arrays) -> None:
    """Writes arrays into typed value fields, as TensorFlow Serving does."""
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
