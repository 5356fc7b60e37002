"""Log probabilities of given targets."""

import tensorflow as tf

from t2t_repro.layers.label_smoothing import smoothed_cross_entropy
from t2t_repro.models.transformer import Transformer


def log_probs(model: Transformer, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Computes the log probability of every token, given the previous ones.

    Args:
        model: Built model.
        inputs: int32 (batch, source), ending in EOS, 0-padded.
        targets: int32 (batch, target), 0-padded.

    Returns:
        float32 (batch, target), in nats; 0 at padding.
    """
    logits = tf.cast(model({"inputs": inputs, "targets": targets}), tf.float32)
    losses = smoothed_cross_entropy(logits, targets, 0.0)
    return tf.where(tf.equal(targets, 0), 0.0, -losses)
