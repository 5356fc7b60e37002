"""Server with TensorFlow Serving's REST interface, for trying and for notebooks.

The server loads an export with TensorFlow's graph loader, without the code of the
model. It merges, pads and splits requests by TensorFlow Serving's rules:

- tensorflow_serving/batching/batching_session.cc: requests with the same signature are
  concatenated along axis 0; variable lengths are padded with each tensor's first
  element; a batch is filled up to an allowed size with the first row of its last
  request; outputs are split along axis 0, which must be the batch axis;
- tensorflow_serving/batching/batching_util.cc: padding;
- tensorflow/core/kernels/batching_util/shared_batch_scheduler.h: closing of batches and
  rejection of requests;
- tensorflow_serving/util/json_tensor.cc: JSON.

It does not support gRPC, several models or versions, versions that are exported while
it runs, warm-up and monitoring. In production, use TensorFlow Serving.
"""
