"""Test server that simulates TensorFlow Serving over gRPC and REST.

`t2t_repro.serving.server` loads the model, merges requests and answers over REST; this
package adds `PredictionService` over gRPC.
"""
