"""The smoothed cross entropy with its gradient written out."""

import tensorflow as tf

from t2t_repro.fast.rows import rows_of
from t2t_repro.layers.formulas import entropy_of_smoothing


def smoothed_cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float
) -> tf.Tensor:
    """Stands in for `formulas.smoothed_cross_entropy`.

    The gradient is the softmax, which the loss has computed already, minus the
    distribution that is asked for.
    """
    vocab_size = logits.shape[-1]
    low = label_smoothing / (vocab_size - 1)
    weight = 1.0 - label_smoothing - low
    entropy = entropy_of_smoothing(label_smoothing, vocab_size)
    flat = tf.reshape(targets, [-1])

    @tf.custom_gradient
    def cross_entropy(z: tf.Tensor) -> tuple[tf.Tensor, object]:
        # oneDNN's softmax takes a third of the time of the cross-entropy kernels. Its
        # largest entry is at least 1 / V, so its logarithm is exact where that of the
        # label's own entry may be that of 0.
        softmax = tf.nn.softmax(z)
        log_sum = tf.reduce_max(z, axis=1) - tf.math.log(tf.reduce_max(softmax, axis=1))
        chosen = tf.gather(z, flat, axis=1, batch_dims=1)
        loss = log_sum - weight * chosen - low * tf.reduce_sum(z, axis=1)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            dense = (softmax - low) * upstream[:, None]
            places = tf.stack([tf.range(tf.shape(flat)[0]), flat], axis=1)
            return tf.tensor_scatter_nd_sub(dense, places, weight * upstream)

        return loss - entropy, gradient

    return tf.reshape(cross_entropy(rows_of(logits)), tf.shape(targets))
