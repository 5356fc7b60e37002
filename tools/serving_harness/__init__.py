"""A test tool that answers as TensorFlow Serving does; it is not TensorFlow Serving.

It loads an export through TensorFlow's graph loader, with no code of this project,
speaks the real protocols (`PredictionService` over gRPC with the real messages, and
REST with the real JSON), and merges, pads and splits requests by the server's rules:

- tensorflow_serving/batching/batching_session.cc: requests of one signature are
  joined along axis 0; variable lengths are padded with each tensor's first element;
  a batch is filled up to an allowed size with the first row of its last request;
  outputs are split along axis 0, which must be the batch;
- tensorflow_serving/batching/batching_util.cc: the padding;
- tensorflow/core/kernels/batching_util/shared_batch_scheduler.h: when a batch closes,
  and when a request is refused;
- tensorflow_serving/util/json_tensor.cc: the JSON.

What it does not do: several models or versions, models that change while it runs,
warm-up, monitoring, metadata and status. Use the stock server for anything but tests.
"""
