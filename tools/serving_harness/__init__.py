"""Test server that simulates TensorFlow Serving.

The server loads an export with TensorFlow's graph loader, without code of this
project. It implements `PredictionService` over gRPC and the REST interface, and it
merges, pads and splits requests by TensorFlow Serving's rules:

- tensorflow_serving/batching/batching_session.cc: requests with the same signature are
  concatenated along axis 0; variable lengths are padded with each tensor's first
  element; a batch is filled up to an allowed size with the first row of its last
  request; outputs are split along axis 0, which must be the batch axis;
- tensorflow_serving/batching/batching_util.cc: padding;
- tensorflow/core/kernels/batching_util/shared_batch_scheduler.h: closing of batches and
  rejection of requests;
- tensorflow_serving/util/json_tensor.cc: JSON.

It does not support several models or versions, models that change while it runs,
warm-up, monitoring, metadata and status. Use TensorFlow Serving except in tests.
"""
